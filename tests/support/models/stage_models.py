"""Tiny models of the real architectures, with random weights, saved as a hub's model is; and libraries for them.

Each maker of a model writes a folder that `from_pretrained` takes: config, weights, processor and a tokenizer
trained on a few words. They talk nonsense of real words, by the code that talks sense with real weights.
"""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinodex.index.library import Library
from kinodex.index.spaces.load import load_image_tower, load_text_tower
from kinodex.jobs.add.run import add
from kinodex.jobs.add.stages import Vectors
from kinodex.jobs.ingest.commit import join_chunks
from kinodex.jobs.ingest.messages import ChunkRead
from kinodex.pipeline.images import ModelInput
from kinodex.pipeline.models.audio import RATE_HZ, Sound
from kinodex.pipeline.models.hub import import_transformers
from kinodex.pipeline.sample import FrameRow, IngestSettings, frame_row
from tests.support.ffmpeg import read_whole, whole
from tests.support.libraries.random_library import add_stage, caption
from tests.support.models.sentence_models import small_bert
from tests.support.models.tiny_models import TINY, write_model
from tests.world.drawn_space import DRAWN

WORDS = "a red kite over the sea and two boats at night in the snow with a cat dog house car what is to be seen here"
CHAT = (
    "{% for message in messages %}{% for part in message['content'] %}"
    "{% if part['type'] == 'image' %}<image>{% else %}{{ part['text'] }}{% endif %}"
    "{% endfor %}{% endfor %}{% if add_generation_prompt %} :{% endif %}"
)
BATCH = 16
SMALL = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}
LANGUAGE = {**SMALL, "num_key_value_heads": 2, "bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 2}
CONTROLS = (
    "<|endoftext|>",
    "<|startoftranscript|>",
    "<|en|>",
    "<|de|>",
    "<|translate|>",
    "<|transcribe|>",
    "<|startoflm|>",
    "<|startofprev|>",
    "<|nospeech|>",
    "<|notimestamps|>",
)


def llava(folder: Path, seed: int = 0) -> Path:
    """An image-text-to-text model: CLIP's picture tower before a Llama (LLaVA 1.5, Liu et al. 2023)."""
    t = seeded(seed)
    tokenizer = words_tokenizer(
        ["<s>", "</s>", "<pad>", "<image>"], pad_token="<pad>", bos_token="<s>", eos_token="</s>"
    )
    config = t.LlavaConfig(
        vision_config=t.CLIPVisionConfig(image_size=32, patch_size=8, **SMALL),
        text_config=t.LlamaConfig(vocab_size=len(tokenizer), max_position_embeddings=512, **LANGUAGE),
        image_token_index=tokenizer.convert_tokens_to_ids("<image>"),
        image_seq_length=16,
    )
    processor = t.LlavaProcessor(
        image_processor=t.CLIPImageProcessor(size={"shortest_edge": 32}, crop_size={"height": 32, "width": 32}),
        tokenizer=tokenizer,
        patch_size=8,
        vision_feature_select_strategy="default",
        chat_template=CHAT,
        image_token="<image>",
        num_additional_image_tokens=1,
    )
    return saved(folder, t.LlavaForConditionalGeneration(config), processor, not_words(tokenizer))


def llama(folder: Path, seed: int = 0) -> Path:
    """A language model that reads no pictures (Llama; SmolLM2 is one)."""
    t = seeded(seed)
    tokenizer = words_tokenizer(["<s>", "</s>", "<pad>"], pad_token="<pad>", bos_token="<s>", eos_token="</s>")
    tokenizer.chat_template = "{% for message in messages %}{{ message['content'] }}{% endfor %} :"
    config = t.LlamaConfig(vocab_size=len(tokenizer), max_position_embeddings=1024, **LANGUAGE)
    return saved(folder, t.LlamaForCausalLM(config), tokenizer, not_words(tokenizer))


def idefics3(folder: Path, seed: int = 0) -> Path:
    """An image-text-to-text model that takes each turn's pictures as a list (Idefics3; SmolVLM is one)."""
    t = seeded(seed)
    special = ["<s>", "</s>", "<pad>", "<image>", "<fake_token_around_image>", "<global-img>", "<end_of_utterance>"]
    tokenizer = words_tokenizer(special, pad_token="<pad>", bos_token="<s>", eos_token="</s>")
    config = t.Idefics3Config(
        vision_config={**SMALL, "image_size": 32, "patch_size": 8},
        text_config=t.LlamaConfig(vocab_size=len(tokenizer), max_position_embeddings=1024, **LANGUAGE),
        image_token_id=tokenizer.convert_tokens_to_ids("<image>"),
        scale_factor=2,
        pad_token_id=2,
    )
    edge = {"longest_edge": 32}
    pictures = t.Idefics3ImageProcessor(size=edge, max_image_size=edge, do_image_splitting=False)
    processor = t.Idefics3Processor(pictures, tokenizer, image_seq_len=4, chat_template=CHAT)
    return saved(folder, t.Idefics3ForConditionalGeneration(config), processor, not_words(tokenizer))


def rt_detr(folder: Path, labels: Sequence[str] = ("boat", "kite", "cat"), seed: int = 0) -> Path:
    """A closed-vocabulary detector (RT-DETR, Zhao et al. 2023) over a small ResNet."""
    t = seeded(seed)
    backbone = t.RTDetrResNetConfig(
        embedding_size=16,
        hidden_sizes=[16, 16, 32, 32],
        depths=[1, 1, 1, 1],
        layer_type="basic",
        out_features=["stage2", "stage3", "stage4"],
    )
    config = t.RTDetrConfig(
        backbone_config=backbone,
        encoder_hidden_dim=32,
        encoder_in_channels=[16, 32, 32],
        encoder_layers=1,
        encoder_ffn_dim=32,
        encoder_attention_heads=2,
        d_model=32,
        num_queries=12,
        decoder_in_channels=[32, 32, 32],
        decoder_layers=2,
        decoder_ffn_dim=32,
        decoder_attention_heads=2,
        num_denoising=0,
        anchor_image_size=None,
        id2label=dict(enumerate(labels)),
        label2id={label: number for number, label in enumerate(labels)},
    )
    return saved(folder, t.RTDetrForObjectDetection(config), t.RTDetrImageProcessor(size={"height": 64, "width": 64}))


def owlv2(folder: Path, seed: int = 0) -> Path:
    """An open-vocabulary detector (OWLv2, Minderer et al. 2023)."""
    t = seeded(seed)
    tokenizer = words_tokenizer(
        ["!", "<s>", "</s>"], pad_token="!", bos_token="<s>", eos_token="</s>", model_max_length=16
    )
    ids = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
    config = t.Owlv2Config(
        text_config={**SMALL, **ids, "vocab_size": len(tokenizer), "max_position_embeddings": 16},
        vision_config={**SMALL, "image_size": 64, "patch_size": 16},
        projection_dim=32,
    )
    pictures = t.Owlv2ImageProcessor(size={"height": 64, "width": 64})
    processor = t.Owlv2Processor(image_processor=pictures, tokenizer=tokenizer)
    return saved(folder, t.Owlv2ForObjectDetection(config), processor)


def grounding_dino(folder: Path, seed: int = 0) -> Path:
    """An open-vocabulary detector that reads its labels as one text (Grounding DINO, Liu et al. 2023)."""
    t = seeded(seed)
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", "?", *dict.fromkeys(WORDS.split())]
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = t.BertTokenizer(vocab={word: number for number, word in enumerate(words)})
    backbone = t.SwinConfig(
        image_size=64,
        patch_size=4,
        embed_dim=16,
        depths=[1, 1, 1, 1],
        num_heads=[2, 2, 2, 2],
        window_size=4,
        out_features=["stage2", "stage3", "stage4"],
    )
    config = t.GroundingDinoConfig(
        backbone_config=backbone,
        text_config=t.BertConfig(vocab_size=len(words), **SMALL),
        d_model=32,
        encoder_layers=1,
        decoder_layers=2,
        encoder_ffn_dim=32,
        decoder_ffn_dim=32,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        num_queries=12,
        max_text_len=32,
    )
    pictures = t.GroundingDinoImageProcessor(size={"shortest_edge": 64, "longest_edge": 96})
    processor = t.GroundingDinoProcessor(image_processor=pictures, tokenizer=tokenizer)
    return saved(folder, t.GroundingDinoForObjectDetection(config), processor)


def xclip(folder: Path, seed: int = 0, *, whole: bool = False) -> Path:
    """A video-text model (X-CLIP, Ni et al. 2022) of four frames; `whole`: of base-patch32's size, and eight."""
    t = seeded(seed)
    # The end has the highest number, as in CLIP's vocabulary: there the model reads what a text means.
    tokenizer = words_tokenizer(["<s>", "<pad>"], pad_token="<pad>", bos_token="<s>", model_max_length=16)
    tokenizer.add_special_tokens({"eos_token": "</s>"})
    ends_texts(tokenizer)
    texts = {"vocab_size": len(tokenizer), "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": tokenizer.eos_token_id}
    mixing = {"mit_hidden_size": 32, "mit_intermediate_size": 64, "mit_num_attention_heads": 2}
    config = t.XCLIPConfig(
        text_config=texts if whole else {**SMALL, **texts, "max_position_embeddings": 16},
        vision_config={} if whole else {**SMALL, **mixing, "image_size": 32, "patch_size": 8, "num_frames": 4},
        **({} if whole else {"projection_dim": 32, "prompt_num_attention_heads": 2}),
    )
    side = 224 if whole else 32
    pictures = t.VideoMAEImageProcessor(size={"shortest_edge": side}, crop_size={"height": side, "width": side})
    return saved(folder, t.XCLIPModel(config), t.XCLIPProcessor(pictures, tokenizer))


PE_HEADS = {**SMALL, "head_dim": 16}
PE_EYES = {
    **PE_HEADS,
    "vision_config": {
        "architecture": "vit_pe_core_tiny_patch16_384", "num_classes": 24, "global_pool": "map", "do_pooling": True,
        "model_args": {"img_size": 32, "depth": 1, "embed_dim": 32, "num_heads": 2},
    },
}  # fmt: skip
PE_EARS = {
    **PE_HEADS,
    "model_type": "pe_audio_encoder",
    "dac_config": {"model_type": "dac", "encoder_hidden_size": 4, "decoder_hidden_size": 64, "n_codebooks": 1},
}


def pe_video(folder: Path, seed: int = 0) -> Path:
    """A video-text model of Meta's PE family: a small ViT of timm, a transformer over frames, ModernBERT for texts."""
    t = seeded(seed)
    texts, tokenizer, frames = pe_parts(t)
    config = t.PeVideoConfig(text_config=texts, video_config=PE_EYES)
    return saved(folder, t.PeVideoModel(config), t.PeVideoProcessor(frames, tokenizer))


def pe_audio_video(folder: Path, seed: int = 0) -> Path:
    """The same with a half that hears, as facebook/pe-av-large is."""
    t = seeded(seed)
    texts, tokenizer, frames = pe_parts(t)
    both = {**PE_HEADS, "audio_config": PE_EARS, "video_config": {**PE_EYES, "model_type": "pe_video_encoder"}}
    config = t.PeAudioVideoConfig(text_config=texts, audio_video_config=both)
    processor = t.PeAudioVideoProcessor(t.PeAudioFeatureExtractor(), frames, tokenizer)
    return saved(folder, t.PeAudioVideoModel(config), processor)


def pe_parts(t: Any) -> tuple[dict[str, Any], Any, Any]:
    """The configuration of a PE model's texts, their tokenizer, and what prepares frames."""
    ends = {"pad_token": "<pad>", "bos_token": "<s>", "eos_token": "</s>"}
    tokenizer = words_tokenizer(["<s>", "</s>", "<pad>"], **ends, model_max_length=16)
    numbers = {"pad_token_id": 2, "bos_token_id": 0, "eos_token_id": 1, "cls_token_id": 0, "sep_token_id": 1}
    texts = {**SMALL, **numbers, "model_type": "modernbert", "vocab_size": len(tokenizer)}
    return texts, tokenizer, t.PeVideoVideoProcessor(size={"height": 32, "width": 32}, do_resize=True)


def ends_texts(tokenizer: Any) -> None:
    """Have a tokenizer put the mark of its end behind each text, and that of its start before it."""
    from tokenizers.processors import TemplateProcessing

    ids = [(token, tokenizer.convert_tokens_to_ids(token)) for token in (tokenizer.bos_token, tokenizer.eos_token)]
    ends = TemplateProcessing(single=f"{ids[0][0]} $A {ids[1][0]}", special_tokens=ids)
    tokenizer.backend_tokenizer.post_processor = ends


def whisper(folder: Path, seed: int = 0) -> Path:
    """A speech recogniser (Whisper, Radford et al. 2022) with timestamps, two languages and times of words."""
    t = seeded(seed)
    times = [f"<|{step * 0.02:.2f}|>" for step in range(1501)]
    tokenizer = whisper_tokenizer(CONTROLS, times)
    ids = {name: tokenizer.convert_tokens_to_ids(name) for name in CONTROLS}
    end, start = ids["<|endoftext|>"], ids["<|startoftranscript|>"]
    tokens = {"bos_token_id": end, "eos_token_id": end, "pad_token_id": end, "decoder_start_token_id": start}
    config = t.WhisperConfig(
        vocab_size=len(tokenizer),
        num_mel_bins=80,
        d_model=32,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=32,
        decoder_ffn_dim=32,
        max_target_positions=64,
        **tokens,
    )
    model = t.WhisperForConditionalGeneration(config)
    model.generation_config = t.GenerationConfig(
        **tokens,
        max_length=48,
        is_multilingual=True,
        lang_to_id={name: ids[name] for name in ("<|en|>", "<|de|>")},
        task_to_id={name: ids[f"<|{name}|>"] for name in ("transcribe", "translate")},
        no_timestamps_token_id=ids["<|notimestamps|>"],
        prev_sot_token_id=ids["<|startofprev|>"],
        return_timestamps=False,
        max_initial_timestamp_index=50,
        alignment_heads=[[0, 1], [1, 0]],
        suppress_tokens=not_words(tokenizer),
        begin_suppress_tokens=[end],
    )
    return saved(folder, model, t.WhisperProcessor(feature_extractor=t.WhisperFeatureExtractor(), tokenizer=tokenizer))


def space(folder: Path) -> Path:
    """An embedding space of open_clip's form."""
    write_model(folder, TINY)
    return folder


MADE = (llama, llava, xclip, pe_video, pe_audio_video, idefics3, rt_detr, owlv2, grounding_dino, whisper, space)
MAKERS = {each.__name__: each for each in MADE} | {"sentences": small_bert}
"""Makers of tiny models by name."""


def whisper_tokenizer(controls: Sequence[str], times: Sequence[str]) -> Any:
    """Whisper's own tokenizer class, which knows timestamps, over a small vocabulary."""
    from tokenizers import AddedToken

    model = json.loads(words_tokenizer([]).backend_tokenizer.to_str())["model"]
    merges = [tuple(pair) for pair in model["merges"]]
    tokenizer = import_transformers().WhisperTokenizer(vocab=model["vocab"], merges=merges)
    tokenizer.add_special_tokens({"extra_special_tokens": list(controls)})
    tokenizer.add_tokens([AddedToken(time, special=False) for time in times])
    return tokenizer


def words_tokenizer(special: Sequence[str], **named: Any) -> Any:
    """A byte-level BPE tokenizer of a few hundred entries: it reads any text."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=400, special_tokens=list(special), initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator([WORDS] * 4, trainer)
    return import_transformers().PreTrainedTokenizerFast(tokenizer_object=tokenizer, **named)


def seeded(seed: int) -> Any:
    """transformers, with torch's random numbers set: the same seed makes the same model."""
    import torch

    transformers = import_transformers()
    transformers.utils.logging.disable_progress_bar()
    torch.manual_seed(seed)
    return transformers


def not_words(tokenizer: Any) -> list[int]:
    """Entries of a tokenizer that are never to be said: bytes and pieces of words."""
    names = {f"\u0120{word}" for word in WORDS.split() if len(word) > 2}  # byte-level BPE writes a space so
    names |= {*tokenizer.all_special_tokens}
    kept = {number for name, number in tokenizer.get_vocab().items() if name in names or name.startswith("<|")}
    return [number for number in range(len(tokenizer)) if number not in kept]


def saved(folder: Path, model: Any, processor: Any, never_said: Sequence[int] = ()) -> Path:
    if never_said:
        model.generation_config.suppress_tokens = list(never_said)
    model.save_pretrained(folder)
    processor.save_pretrained(folder)
    return folder


def tiny_film(path: Path, seconds: int, seed: int, sound: Sound | None = None) -> Path:
    """A film of moving noise in shots of three seconds, 5 pictures a second; silent unless there is a sound."""
    import av

    chance = np.random.default_rng(seed)
    with av.open(str(path), "w") as file:
        video = file.add_stream("libx264", rate=5)
        video.width, video.height, video.pix_fmt = 64, 36, "yuv420p"
        video.options = {"preset": "ultrafast", "threads": "1"}
        audio = None if sound is None else file.add_stream("aac", rate=RATE_HZ, layout="mono")
        for number in range(5 * seconds):
            if number % 15 == 0:
                scene = chance.integers(0, 256, (9, 16, 3), dtype=np.uint8).repeat(4, axis=0).repeat(4, axis=1)
            picture = av.VideoFrame.from_ndarray(np.roll(scene, number, axis=1), format="rgb24")
            picture.pts = number
            file.mux(video.encode(picture))
        file.mux(video.encode())
        if audio is not None and sound is not None:
            for first in range(0, len(sound.samples), 1024):
                frame = av.AudioFrame.from_ndarray(sound.samples[None, first : first + 1024], "fltp", "mono")
                frame.sample_rate, frame.pts = RATE_HZ, round(sound.start_s * RATE_HZ) + first
                file.mux(audio.encode(frame))
            file.mux(audio.encode())
    return path


def beeps(seconds: float, pauses_s: Sequence[float] = (), start_s: float = 0.0) -> Sound:
    """A tone with pauses of half a second from these times on."""
    times_s = np.arange(round(seconds * RATE_HZ)) / RATE_HZ
    tone = 0.3 * np.sin(2 * np.pi * 440 * times_s)
    for pause_s in pauses_s:
        tone[(times_s >= pause_s) & (times_s < pause_s + 0.5)] = 0.0
    return Sound(start_s, tone.astype(np.float32))


def library_of(place: Path, paths: Sequence[Path], fps: float = 1.0) -> Library:
    """A library in the drawn space, as an ingest leaves it; segments are of two seconds where there is no shot."""
    space, settings = load_image_tower(DRAWN), IngestSettings(fps=fps, window_s=2.0)
    library = Library.open_or_create(str(place), {"fps": fps}, space.fingerprint)
    for path in paths:
        chunk = whole(path)
        summary, pictures = read_whole(path, fps=fps, input=ModelInput.from_json(space.fingerprint.preprocess))
        inputs = np.stack([picture.model_input for picture in pictures])
        vectors = np.concatenate([space.embed(inputs[at : at + BATCH]) for at in range(0, len(inputs), BATCH)])
        wide, times_s = vectors.astype(np.float64), np.array([picture.time_s for picture in pictures])
        distances = 1 - np.sum(wide[1:] * wide[:-1], axis=1)
        video = join_chunks([ChunkRead(chunk, summary, times_s, distances, vectors[[0, -1]], {})], settings, DRAWN)
        video_id = video.row.video_id
        library.writer.add_frames({video_id: [frame_row(*each) for each in zip(pictures, vectors, strict=True)]})
        library.writer.add_segments({video_id: video.segments})
        library.writer.add_speech({video_id: video.speech})
        assert not library.writer.complete([video.row])
    return library


def rgb_of(jpeg: bytes) -> NDArray[np.uint8]:
    """The picture of a stored frame, [height, width, 3]."""
    from PIL import Image

    with Image.open(io.BytesIO(jpeg)) as picture:
        return np.asarray(picture.convert("RGB"))


def stored_row(library: Library, video_id: str) -> FrameRow:
    """The first frame of a video as it was written."""
    held = library.vectors(video_id)
    frame = library.frames(video_id, [int(held.frame_no[0])])[0]
    return FrameRow(frame.frame_no, frame.time_s, frame.width_px, frame.height_px, frame.jpeg, held.vectors[0])


def library_in_two_spaces(folder: Path, seen: str) -> Library:
    """`harbour`, with a caption, in the drawn space and in that of a small model."""
    library = library_of(folder / "library", [tiny_film(folder / "harbour.mp4", 6, 0)])
    (harbour,) = library.videos()
    words = load_text_tower(DRAWN).embed_text([seen])[0]
    add_stage(library, "captions", "captioner", {harbour.video_id: [caption(0, seen, words)]})
    assert add(library, Vectors(space=write_model(folder / "other", TINY))).added == 1
    return library
