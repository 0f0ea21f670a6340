"""Control: the option that fits a few equally spaced frames best, by the library's own space, without a model.

A language model that is no better does not read what it is shown. It is zero-shot CLIP (Radford et al. 2021, section
3.1.2) over the frames of a video; papers know its kin as the atemporal probe (Buch et al. 2022).
"""

from __future__ import annotations

from kinodex.agent.answer import Answer
from kinodex.agent.session import Session
from kinodex.agent.similarity.model import SimilarityModel
from kinodex.agent.variants.base import Variant
from kinodex.agent.variants.baselines.uniform import UniformParameters, uniform
from kinodex.index.kinds import QUOTED_KINDS


async def similarity(session: Session, parameters: UniformParameters) -> Answer:
    """Answer as `uniform` does with the model `similarity`, whatever models the run has."""
    return await uniform(session.with_model(SimilarityModel(session.environment)), parameters)


SIMILARITY = Variant(
    "similarity",
    "control: the option that fits a few equally spaced frames best, without a model",
    similarity,
    lambda longest_s: UniformParameters(),
    roles=(),
    uses=QUOTED_KINDS,
    plain="Picks the option that looks most like a few pictures, evenly spaced. For comparison only.",
)
