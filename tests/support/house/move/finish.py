"""After emit.py: resources, packages, links, settings."""
import sys, subprocess, re, os
from pathlib import Path
root = Path(sys.argv[1]); os.chdir(root)
def mv(a, b):
    if Path(a).exists():
        Path(b).parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["git", "mv", a, b], check=True)
mv("jobs/viewer/static", "kinodex/web/static")
mv("jobs/evaluation/report/paper.mplstyle", "jobs/eval/paper.mplstyle")
mv("jobs/evaluation/report/templates", "jobs/eval/templates")
mv("jobs/simulation/templates", "kinodex/sketch/templates")
mv("pipeline/scenes/contents.jinja", "pipeline/models/prompts/contents.jinja")
mv("index/embedding/builtin", "index/spaces/builtin")
mv("agent/prompts/templates", "agent/templates")
def sub(path, *pairs):
    p = Path(path); t = p.read_text()
    for a, b in pairs:
        if a not in t: print("no", a, "in", path); continue
        t = t.replace(a, b)
    p.write_text(t)
sub("pipeline/scenes.py", ('Path(__file__).parent / "contents.jinja"', 'Path(__file__).parent / "models" / "prompts" / "contents.jinja"'))
sub("index/spaces/cpu.py", ("Path(__file__).parents[2]", "Path(__file__).parents[3]"))
sub("kinodex/web/play.py", ("Path(__file__).parents[3]", "Path(__file__).parents[2]"))
DOCS = {
 "pipeline": "One video in, rows out: sources, decoding, sampling, subtitles, and local models for the optional stages.\n\nKnows no library and no cluster; imports no other room.",
 "pipeline/decoding": "Containers, timestamps and decoders: from one local file to the frames shown at sample instants, with exact times.\n\nA decoder more is a module here with a reader of the protocol in `stream`, named in `open`.",
 "pipeline/media": "Parts of a video as files and streams of their own: cut at key frames without loss, or exactly by encoding again.\n\nUses decoding, and knows what browsers play.",
 "pipeline/models": "Local models of the optional stages: captions, detections with tracks, speech and its voices, text on screen.\n\nEach loads on first use and knows one picture, one sound or one text.",
 "index": "The library: Lance tables, embedding spaces and search.\n\nKnows no codec and no language model; imports no other room.",
 "index/search": "Search by vector and by words, fusion by rank, and search of one video in memory.\n\nUses store, and rows of the room.",
 "index/store": "Lance: the tables of a library, schema, filters, indexes and leases, without knowledge of what rows mean.\n\nThe only folder that imports lance.",
 "index/videos": "Rows of videos: write them, count them, make them visible, find a video, and log the runs of ingest.\n\nUses store.",
 "index/spaces": "Embedding spaces: open_clip models by name, their weights, preprocessing and arithmetic, with and without torch.\n\n`builtin` holds the small space of the drawn films.",
 "agent": "The agent: typed questions to models over a library that was indexed once; it never opens a video.\n\nMay import `index`, and nothing of `pipeline` or `jobs`.",
 "agent/models": "Models that answer requests: a language model behind an endpoint or in this process, and a few rules (`rules`).\n\nUses requests and prompts; knows no agent but in `rules`.",
 "agent/requests": "Requests that several agents share; those of one agent are beside it under `agent.variants`.\n\nA request is a question to a model with the form of its reply.",
 "agent/tools": "Tools that agents of several papers call: captions on demand, detection, uniform frames.\n\nThey act on an environment and leave what they found in the session.",
 "agent/variants": "The agents: a file or two for each paper, with its algorithm, its requests and its tools, and one for the controls.\n\n`agent.ask` lists them; a user's own is a file of its own (`--agent FILE.py:NAME`).",
 "jobs": "Long runs over a library, here or on Ray: ingest, additions, evaluation, export, training.\n\nThey join pipeline, index and agent, can be killed and run again, and serve nothing.",
 "jobs/ingest": "Ingest: many sources into one library, on threads of this process or on Ray. `kinodex ingest`.\n\n`run` tells the story; the coordinator hands out the work and workers do it.",
 "jobs/add": "Additions to a library, from captions to summaries, here or on Ray: settings, rows of a video, a run. `kinodex add`.\n\nText that was made elsewhere comes in by `import_text`.",
 "jobs/eval": "Evaluation: contenders compared on the same items of a benchmark, their results written, scored and drawn.\n\nBenchmarks are read by `readers`; searches and ranges are measured by `moments`.",
 "jobs/eval/readers": "Readers of benchmarks as they are published: from an annotation file to items, each with its target.\n\n`jobs.eval.benchmarks` lists them.",
 "jobs/export": "Videos of a library for other programs: clips, frames, texts, annotations and data sets. `kinodex export`.\n\nAll but data sets are made of moments: ranges of videos with a label.",
 "jobs/train": "GRPO training of a LongVideoAgent master. `kinodex train master`.\n\nAn experiment, whose interface may change.",
 "kinodex/cli": "The command line: a file a family of commands; each parses, calls Python and prints.\n\n`main` lists the commands; what several print is in `show` and `tree_view`.",
 "kinodex/web": "Pages and endpoints of `kinodex serve` and `kinodex view`: look, ask, search and play in a browser or by HTTP.\n\n`app` puts the parts together; the page itself is in `static`.",
 "kinodex/mcp": "A library as tools of an assistant, over the Model Context Protocol. `kinodex mcp`.\n\n`server` holds the tools, `replies` their words.",
 "kinodex/doctor": "Checks of this machine for `kinodex doctor`: each part is really tried, as far as that costs seconds.\n\n`machine` holds a function for each section of the page.",
 "kinodex/sketch": "The sketch world: films drawn by code with questions whose answers are known, and what trains and scores its space.\n\nA stand-in for real videos and models, in demo and tests.",
 "kinodex/bench": "Measurements on this machine, as ratios within one run. `kinodex bench`.\n\nA file a measurement; `commands` is their command line.",
}
for d, doc in DOCS.items():
    p = Path(d) / "__init__.py"
    if d == "kinodex" or not Path(d).is_dir(): 
        if not Path(d).is_dir(): print("no folder", d)
        continue
    head = p.read_text() if p.exists() else ""
    p.write_text(f'"""{doc}\n"""\n')
for d in {p.parent for room in ("pipeline","index","agent","jobs","kinodex") for p in Path(room).rglob("*.py")}:
    if not (d / "__init__.py").exists(): print("no __init__ in", d)
for room in ("agent", "index", "jobs", "pipeline"):
    link = Path("kinodex") / room
    if not link.is_symlink(): link.symlink_to(f"../{room}")
t = Path("pyproject.toml").read_text()
t = re.sub(r'kinodex = "[\w.]+:main"', 'kinodex = "kinodex.cli.main:main"', t)
t = t.replace('''[tool.hatch.build.targets.wheel]
packages = ["kinodex", "pipeline", "index", "agent", "jobs"]
''', '''# The rooms lie at the top of the checkout and are imported as kinodex.pipeline and so on: by the links in kinodex/ here and
# in an editable install, by folders in a wheel. A builder that followed the links would count each folder once.
[tool.hatch.build]
skip-excluded-dirs = true
exclude = ["kinodex/agent", "kinodex/index", "kinodex/jobs", "kinodex/pipeline"]

[tool.hatch.build.targets.wheel]
packages = ["kinodex"]

[tool.hatch.build.targets.wheel.force-include]
agent = "kinodex/agent"
index = "kinodex/index"
jobs = "kinodex/jobs"
pipeline = "kinodex/pipeline"
''')
t = t.replace('known-first-party = ["kinodex", "pipeline", "index", "agent", "jobs", "tests"]', 'known-first-party = ["kinodex", "tests"]')
t = t.replace('files = ["kinodex", "pipeline", "index", "agent", "jobs", "tests"]', 'files = ["kinodex", "tests"]')
Path("pyproject.toml").write_text(t)
subprocess.run("find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +; find pipeline index agent jobs kinodex tests -type d -empty -delete", shell=True)

t = Path("kinodex/__init__.py").read_text()
import ast
tree = ast.parse(t)
for n in tree.body:
    if isinstance(n, ast.Assign) and n.targets[0].id == "_HOMES":
        homes = {}
        for k, v in zip(n.value.keys, n.value.values): homes.setdefault(k.value, []).extend(x.value for x in v.elts)
        lines = "_HOMES = {\n" + "".join(f"    {k!r}: ({', '.join(map(repr, sorted(v)))},),\n" for k, v in sorted(homes.items())) + "}"
        src = t.splitlines(keepends=True)
        t = "".join(src[:n.lineno-1]) + lines.replace("'", '"') + "\n" + "".join(src[n.end_lineno:])
Path("kinodex/__init__.py").write_text(t)
