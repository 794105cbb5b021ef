"""Trains the model of plugin `gpt` in PyTorch, from the same first weights on the same batches, and compares the losses.

    steadfast run gpt.wasm --input FOLDER --seed SEED --config '{"weights_every": 1000000}'
    compare.py OUTPUT-FOLDER TEXT --seed SEED

The folder is that of the job's outputs: the first weights are in `weights/000000.safetensors`, the losses in `loss.csv`. The options are fields of the
job's configuration; their defaults are those of the preset `small`. Needs torch, numpy and safetensors.
"""

import argparse
import csv
import math
import pathlib
import time

import torch
from safetensors import safe_open
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention, self.attended = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.hidden, self.active = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, stream):
        texts, length, width = stream.shape
        queries = self.attention(self.ln_1(stream)).split(width, dim=2)
        queries, keys, values = (x.view(texts, length, self.heads, -1).transpose(1, 2) for x in queries)
        attended = F.scaled_dot_product_attention(queries, keys, values, is_causal=True)
        stream = stream + self.attended(attended.transpose(1, 2).reshape(texts, length, width))
        return stream + self.active(F.gelu(self.hidden(self.ln_2(stream)), approximate="tanh"))


class Transformer(nn.Module):
    def __init__(self, characters, layers, heads, width, context):
        super().__init__()
        self.tokens, self.places = nn.Embedding(characters, width), nn.Embedding(context, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)

    def forward(self, tokens):
        stream = self.tokens(tokens) + self.places(torch.arange(tokens.shape[1]))
        for block in self.blocks:
            stream = block(stream)
        return self.norm(stream) @ self.tokens.weight.T

    @torch.no_grad()
    def load(self, file):
        """Takes tensors of GPT-2's names and shapes, in which dense layers have a row for each input."""

        def copy(module, name, transposed=False):
            weight = file.get_tensor(f"{name}.weight")
            module.weight.copy_(weight.T if transposed else weight)
            if getattr(module, "bias", None) is not None:
                module.bias.copy_(file.get_tensor(f"{name}.bias"))

        copy(self.tokens, "wte")
        copy(self.places, "wpe")
        copy(self.norm, "ln_f")
        for index, block in enumerate(self.blocks):
            copy(block.ln_1, f"h.{index}.ln_1")
            copy(block.ln_2, f"h.{index}.ln_2")
            copy(block.attention, f"h.{index}.attn.c_attn", True)
            copy(block.attended, f"h.{index}.attn.c_proj", True)
            copy(block.hidden, f"h.{index}.mlp.c_fc", True)
            copy(block.active, f"h.{index}.mlp.c_proj", True)


class Draws:
    """SplitMix64, as src/draws.rs counts it."""

    def __init__(self, seed):
        self.seed, self.position = seed, 0

    def below(self, bound):
        mask = (1 << 64) - 1
        self.position += 1
        mixed = self.seed + self.position * 0x9E3779B97F4A7C15 & mask
        mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9 & mask
        mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB & mask
        return (mixed ^ mixed >> 31) * bound >> 64


def rate(step, given):
    if step < given.warm_up:
        return given.learning_rate * (step + 1) / given.warm_up
    share = (step - given.warm_up) / max(given.steps - given.warm_up, 1)
    left = 0.5 * (1 + math.cos(math.pi * min(share, 1)))
    return given.learning_rate * (given.last_rate + (1 - given.last_rate) * left)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=pathlib.Path)
    parser.add_argument("text", type=pathlib.Path)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--first-steps", type=int, help="end after so many, to measure speed")
    parser.add_argument("--precision", choices=["float32", "bfloat16"], default="float32")
    for name, default in {"batch": 8, "steps": 1000, "warm-up": 50}.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    for name, default in {
        "learning-rate": 2e-3,
        "last-rate": 0.1,
        "weight-decay": 0.1,
        "clip": 1.0,
        "validation-share": 0.1,
    }.items():
        parser.add_argument(f"--{name}", type=float, default=default)
    parser.add_argument("--betas", type=float, nargs=2, default=(0.9, 0.99))
    return parser.parse_args()


def main():
    given = arguments()
    torch.set_num_threads(given.threads)
    with (given.output / "loss.csv").open() as lines:
        ours = [float(line["loss"]) for line in csv.DictReader(lines)]
    with safe_open(given.output / "weights/000000.safetensors", "pt") as file:
        about = file.metadata()
        table = {character: token for token, character in enumerate(about["characters"])}
        context = int(about["context"])
        model = Transformer(len(table), int(about["layers"]), int(about["heads"]), int(about["width"]), context)
        model.load(file)

    text = given.text.read_text(encoding="utf-8")
    text = torch.tensor([table[character] for character in text])
    text = text[: len(text) - int(len(text) * given.validation_share)]

    decayed = [weight for weight in model.parameters() if weight.dim() > 1]
    others = [weight for weight in model.parameters() if weight.dim() == 1]
    groups = [{"params": decayed, "weight_decay": given.weight_decay}, {"params": others, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, betas=tuple(given.betas), eps=1e-8)

    print(f"torch {torch.__version__}, {given.threads} threads, {sum(w.numel() for w in model.parameters())} weights")
    print("step   gpt      torch    apart")
    draws, apart = Draws(given.seed), []
    steps = min(given.steps, given.first_steps or given.steps)
    began = time.perf_counter()
    for step in range(steps):
        firsts = [draws.below(len(text) - context) for _ in range(given.batch)]
        pieces = torch.stack([text[first : first + context + 1] for first in firsts])
        with torch.autocast("cpu", torch.bfloat16, enabled=given.precision == "bfloat16"):
            scores = model(pieces[:, :-1])
        loss = F.cross_entropy(scores.float().flatten(0, 1), pieces[:, 1:].flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), given.clip)
        for group in optimizer.param_groups:
            group["lr"] = rate(step, given)
        optimizer.step()
        apart.append(abs(loss.item() - ours[step]))
        if step in (0, 1, 10, 100, 500, steps - 1) or step % 200 == 0:
            print(f"{step:4}  {ours[step]:.4f}   {loss.item():.4f}   {apart[-1]:.4f}", flush=True)
    seconds = time.perf_counter() - began
    print(f"largest difference {max(apart):.4f}; {steps / seconds:.1f} steps a second in PyTorch")


main()
