"""Measure what docs/measured.md says: `python -m docs.measure NAME... [OPTIONS]` writes docs/results/NAME.json.

Options, from the first word that begins with two dashes on, are for `ground`, `ground-parts` and `ingest`.

A measurement is the lines of a shell, run in an empty folder, and what they print is kept beside them. Those that need
the small real models of ../shared/MODELS.md find them in $PHOTO, $SPEECH, $SENTENCES, $LANGUAGE, the space of the drawn
films in $DRAWN, real clips in $CLIPS, questions about them in $QUESTIONS and published captions in $BENCHMARKS. What
takes hours goes on with what is in $KEPT.
"""

from __future__ import annotations

import itertools
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from tests.world.drawn_space import DRAWN

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "docs" / "results"
MODELS = {
    "PHOTO": "/tmp/models/photo",
    "SPEECH": "/tmp/models/speech",
    "SENTENCES": "/tmp/models/minilm",
    "LANGUAGE": "/tmp/models/language",
}

MEASUREMENTS = {
    "search-sketch": """
        python -m tests.world.sample films --hours 0.3 --seed 32 --form independent
        kinodex ingest films --library library --space "$DRAWN"
        python -m tests.sketch.searches films > searches.jsonl
        print kinodex eval search own searches.jsonl --library library --markdown
        print kinodex eval ground own searches.jsonl --library library --markdown
    """,
    "search-clips": """
        kinodex ingest "$CLIPS" --library library --space photo --fps 2
        print kinodex eval search own "$ROOT/tests/data/real_clip_queries.jsonl" --library library --markdown
        print kinodex eval ground own "$ROOT/tests/data/real_clip_queries.jsonl" --library library --markdown
    """,
    "verdicts": """
        python -m tests.world.sample films --hours 0.3 --seed 1586 --form independent
        kinodex ingest films --library drawn --space "$DRAWN"
        python -m tests.sketch.searches films > searches.jsonl
        print echo "drawn films, their space"
        print python -m tests.support.verdicts drawn searches.jsonl
        kinodex ingest "$CLIPS" --library clips --space photo --fps 2
        print echo "real clips, photo"
        print python -m tests.support.verdicts clips "$ROOT/tests/data/real_clip_queries.jsonl"
    """,
    "paraphrases": """
        print python -m tests.support.paraphrases "$SENTENCES"
    """,
    "duplicates-photo": """
        python -m tests.support.duplicates.films films
        python -m tests.world.sample drawn --hours 0.06 --seed 3 --form independent
        kinodex ingest films drawn --library library --space photo
        print python -m tests.support.duplicates.measure library films
    """,
    "chapters": """
        python -m tests.world.sample films --form story --hours 0.5 --seed 21
        kinodex ingest films --library library --space "$DRAWN"
        print python -m tests.support.scenes.measure_borders library films
    """,
    "cuts": """
        python -m tests.world.sample films --hours 0.25 --seed 91 --form independent
        python -m tests.support.scenes.measure_cuts timed drawn_s kinodex ingest films --library drawn --space "$DRAWN"
        print echo "drawn films, by their scripts"
        print python -m tests.support.scenes.measure_cuts measure drawn films drawn_s
        python -m tests.support.scenes.measure_cuts join joined "$CLIPS"
        mkdir notes && mv joined/*.json notes
        python -m tests.support.scenes.measure_cuts timed joined_s \\
            kinodex ingest joined --library real --space "local-dir:$PHOTO"
        print echo "pieces of real clips that ffmpeg joined"
        print python -m tests.support.scenes.measure_cuts measure real notes joined_s
        python -m tests.support.scenes.measure_cuts timed clips_s \\
            kinodex ingest "$CLIPS" --library clips --space "local-dir:$PHOTO"
        print echo "real clips, by ffmpeg's select='gt(scene,0.4)'"
        print python -m tests.support.scenes.measure_cuts filter clips clips_s
    """,
    "extracts": """
        python -m tests.world.sample films --form story --hours 0.3 --seed 3227
        kinodex ingest films --library library --space "$DRAWN"
        print python -m tests.support.extracts library films
    """,
    "extracts-language": """
        mkdir films
        cp "$CLIPS"/simpl__gbike* "$CLIPS"/simpl__tears* "$CLIPS"/pixeltable__bangkok* films
        kinodex ingest films --library library --space photo
        kinodex import captions "$ROOT/tests/data/apache_clip_captions.jsonl" library --model hand
        cp "$ROOT/tests/data/apache_clip_schema.json" schema.json
        kinodex extract library --schema schema.json --into shown --each video --model "constrained:$LANGUAGE"
        print kinodex sql library "SELECT title, place, vehicles, people FROM shown JOIN videos USING (video_id)"
        print kinodex ask library "Which films show a street with cars?" --agent all --model "constrained:$LANGUAGE"
    """,
    "collection": """
        python -m tests.support.collection draw films 200 3302
        kinodex ingest films --library library --space "$DRAWN"
        print python -m tests.support.collection library films
    """,
    "clips": """
        python -m tests.world.sample films --hours 0.03 --seed 3240 --form independent
        kinodex ingest films --library library --space "$DRAWN"
        python -m tests.sketch.searches films --count 24 > searches.jsonl
        print python -m tests.support.scenes.measure_clips library searches.jsonl made
    """,
    "screen-text": """
        python -m tests.world.sample films --hours 0.15 --seed 5 --form story
        kinodex ingest films --library library --space "$DRAWN"
        kinodex add screen_text library
        print python -m tests.bench.screen_text library films
    """,
    "similarity": """
        kinodex ingest "$CLIPS" --library clips --space photo
        print kinodex eval own clips --annotations "$QUESTIONS" --seed 1 --out run --agent uniform --agent kino \\
            --agent eea --agent vca
        print python -m tests.bench.other_pictures clips "$QUESTIONS"
    """,
    "similarity-egoschema": """
        kinodex import captions "$BENCHMARKS/egoschema/lavila_subset.json" library --model lavila --space photo
        print kinodex eval egoschema library --annotations "$BENCHMARKS/egoschema/subset_anno.json" --seed 1 \\
            --out run --agent uniform:frames=180 --agent uniform
    """,
    "similarity-nextqa": """
        kinodex import captions "$BENCHMARKS/nextqa/nextqa_allcaps_1fps.zip" library --model captions --space photo
        print kinodex eval nextqa library --annotations "$BENCHMARKS/nextqa/val.csv" --seed 1 \\
            --out run --agent uniform:frames=180 --agent uniform
    """,
    "similarity-egoschema-meaning": """
        kinodex import captions "$BENCHMARKS/egoschema/lavila_subset.json" library --model lavila --space none
        kinodex add sentences library --model "$SENTENCES"
        print kinodex eval egoschema library --annotations "$BENCHMARKS/egoschema/subset_anno.json" --seed 1 \\
            --out run --agent uniform:frames=180 --agent uniform
    """,
    "similarity-nextqa-meaning": """
        kinodex import captions "$BENCHMARKS/nextqa/nextqa_allcaps_1fps.zip" library --model captions --space none
        kinodex add sentences library --model "$SENTENCES"
        print kinodex eval nextqa library --annotations "$BENCHMARKS/nextqa/val.csv" --seed 1 \\
            --out run --agent uniform:frames=180 --agent uniform
    """,
    "drawn-space": """
        print python -m tests.sketch.score_story
    """,
    "sizes": """
        kinodex ingest "$CLIPS" --library library --space photo --fps 2
        kinodex maintain library --purge --keep-minutes 0
        print kinodex info library
        print du -sb library/*.lance
    """,
    "ground": """
        ground="python -m tests.support.world.ground $OPTIONS --frames 32 --agents kino,eea,uniform,oracle"
        print $ground --films 24x15-763020 --eyes perfect,erring
        print $ground --films 8x45-451213 --eyes perfect,erring
        print $ground --films 4x120-740070 --eyes perfect,erring
    """,
    "ground-agents": """
        ground="python -m tests.support.world.ground $OPTIONS --frames 32"
        agents=kino,eea,vca,longvideoagent,videoseek,videoagent2,videoagent,random-frames,blind
        print $ground --agents $agents --films 8x45-451213 --eyes perfect,erring
        print $ground --agents $agents --films 24x15-763020
        print $ground --agents $agents,uniform --films 24x15-763020 --force-choice
    """,
    "ground-silent": """
        ground="python -m tests.support.world.ground $OPTIONS --frames 32 --no-speech --eyes perfect,erring"
        print $ground --agents kino,eea,uniform,oracle --films 8x45-451213
    """,
    "ground-frames": """
        ground="python -m tests.support.world.ground $OPTIONS --films 8x45-451213"
        print $ground --agents kino,eea,uniform,oracle --frames 4,8,16,64,128
        print $ground --agents kino,eea --frames 1000 --eyes perfect,erring
    """,
    "ground-parts": """
        ground="python -m tests.support.world.ground $OPTIONS --frames 32 --eyes perfect,erring"
        parts=kino,kino:least_share=0,kino:spread=false,kino:anchor_frames=0,kino:route=false,kino:sharpness=1
        shares=kino:least_share=0.03,kino:least_share=0.3
        print $ground --agents $parts,$shares,kino:anchors_from=frames --films 12x15-807487
    """,
    "language-model": """
        print python -m tests.end_to_end.test_real_language_model "$LANGUAGE"
        print python -m tests.end_to_end.test_real_language_model "$LANGUAGE" free
    """,
    "start": """
        print python -m tests.bench.start . --rounds 5
    """,
    "wheels": """
        print python -m tests.support.house.wheels
    """,
    "queries": """
        python -m tests.bench.random_space space --model ViT-B-32
        print python -m tests.bench.queries . --space "$DRAWN" --space "local-dir:$PWD/space"
    """,
    "map": """
        python -m tests.world.sample films --hours 0.5 --seed 9 --form independent
        kinodex ingest films --library library --space "$DRAWN"
        print python -m tests.bench.mapping library
    """,
    "base-install": """
        python3 -m venv base
        base/bin/pip install --quiet -c "$ROOT/constraints.txt" "$ROOT"
        print bash -c 'cd base && du -sm --apparent-size .'
        print bash -c 'cd base/lib/python3*/site-packages && du -sm --apparent-size * | sort -rn | head -24'
        print bash -c "find base -name '*.pyc' -print0 | du -cm --apparent-size --files0-from=- | tail -1"
    """,
    "ingest": """
        python -m tests.support.gpu.peer lengths films
        print python -m tests.bench.ingest films/*.mp4 $OPTIONS
    """,
    "first-ingest": """
        python -m tests.support.gpu.peer lengths films
        python -m tests.bench.random_space space --model ViT-B-32
        print python -m tests.bench.first_ingest films/clip-1-s.mp4 "$PWD/space"
    """,
    "live": """
        python -m tests.world.sample films --hours 0.034 --seed 33 --form independent --minutes 2
        ffmpeg -v error -i films/film-01.mp4 -an -vf fps=4 -c:v libx264 -preset veryfast -bf 0 -g 8 \\
            -pix_fmt yuv420p film.ts
        ffmpeg -v error -stream_loop -1 -t 3700 -i film.ts -c copy loop.ts
        print python -m tests.bench.live films/film-01.mp4 loop.ts $OPTIONS
    """,
    "search": """
        print python -m tests.bench.search library
    """,
    "search-where": """
        print python -m tests.bench.search "${MILLION:-library}" --videos 2000 --frames 500 --lines 50 \\
            --jpeg-bytes 100 --conditions
    """,
    "gpu": """
        python -m tests.support.gpu.peer films films 4
        print python -m tests.bench.gpu films/film.mp4 --seconds 6 --limit 170
        print python -m tests.support.gpu.files "$CLIPS" clips
        python -m tests.bench.random_space space --model ViT-B-32-SigLIP2-256
        print kinodex ingest films --library nvdec --space "local-dir:$PWD/space" --device cuda --decoder nvdec
        print kinodex ingest films --library auto --space "local-dir:$PWD/space" --device cuda
        print python -m tests.support.gpu.peer torchcodec space nvdec.lance 4 films/*.mp4
        print python -m tests.support.gpu.peer pyav space pyav.lance 4 films/*.mp4
        print python -m tests.support.gpu.peer alone films/*.mp4
    """,
    "faults": """
        print python -W ignore -m tests.support.faults --calls 5 --kept "$KEPT"
    """,
    "faults-store": """
        print python -W ignore -m tests.support.faults --layer s3 --calls 2 --kept "$KEPT" \\
            ingest "add captions" "add detections" "add speech" extract "set metadata" relocate remove \\
            "remove added" use-space
    """,
    "decoders": """
        python -m pip install --quiet --target peers --no-deps decord==0.6.0 torchcodec==0.13.0
        export PYTHONPATH="$PYTHONPATH:$PWD/peers"
        print python -m tests.bench.decoders "$CLIPS/moviepy__sintel_trailer_52s.mp4" \\
            "$CLIPS/intel__one-by-one-person-detection.mp4" "$CLIPS/moviepy__big_buck_bunny_0_30.webm" \\
            --fps 0.2 --fps 1
    """,
}


def measure(name: str, options: str = "") -> Path:
    """Run a measurement, and keep its commands, what they printed, their seconds, commit and date."""
    shares = ROOT.parent / "shared"
    environment = {
        **MODELS,
        "KEPT": "/tmp/kinodex-kept",
        **os.environ,
        "ROOT": str(ROOT),
        "DRAWN": DRAWN,
        "OPTIONS": options,
        "CLIPS": str(shares / "media" / "clips"),
        "QUESTIONS": str(shares / "photo" / "questions.jsonl"),
        "BENCHMARKS": str(shares / "benchmarks"),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "COLUMNS": "200",
    }
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # with it every start compiles kinodex again, as no user's does
    load, began = os.getloadavg()[0], time.monotonic()
    with tempfile.TemporaryDirectory(prefix="kinodex-measure-") as folder:
        script = f'set -eu\nprint() {{ "$@" | tee -a printed.txt; }}\n{MEASUREMENTS[name]}'
        subprocess.run(
            ["bash", "-o", "pipefail", "-c", script], cwd=folder, env=environment, check=True, stdout=sys.stderr
        )
        printed = (Path(folder) / "printed.txt").read_text(encoding="utf-8")
    commit = subprocess.check_output(["git", "rev-parse", "--short=10", "HEAD"], cwd=ROOT, text=True)
    result = {
        "commands": commands_of(MEASUREMENTS[name]),
        **({"options": options} if options else {}),
        "commit": commit.strip(),
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": round(time.monotonic() - began),
        "load": [round(load, 1), round(os.getloadavg()[0], 1)],
        "printed": printed.rstrip().split("\n"),
    }
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return path


def commands_of(measurement: str) -> list[str]:
    """The lines of a measurement, without the mark of those whose output is kept."""
    return [line.strip().removeprefix("print ") for line in measurement.strip().split("\n")]


if __name__ == "__main__":
    names = list(itertools.takewhile(lambda word: not word.startswith("--"), sys.argv[1:]))
    for name in names or MEASUREMENTS:
        print(measure(name, shlex.join(sys.argv[1 + len(names) :])))
