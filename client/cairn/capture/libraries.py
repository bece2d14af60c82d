"""Versions of the libraries that decide what a training computes, from their metadata: none of them is imported."""

from importlib import metadata

from cairn.pace import rest

KNOWN = (
    *("torch", "torchvision", "torchdata", "triton", "transformers", "accelerate", "datasets", "tokenizers", "peft"),
    *("trl", "deepspeed", "megatron-core", "nemo-toolkit", "transformer-engine", "transformer_engine_torch", "apex"),
    *("flash-attn", "flash-attn-3", "xformers", "lightning", "pytorch-lightning", "torchtitan", "composer", "mosaicml"),
    *("torchao", "bitsandbytes", "liger-kernel", "vllm", "sglang", "ray", "verl", "openrlhf", "colossalai"),
    *("jax", "jaxlib", "flax", "optax", "orbax-checkpoint", "tensorflow", "numpy", "safetensors", "sentencepiece"),
    *("tiktoken", "mosaicml-streaming", "webdataset", "wandb", "mlflow", "mlflow-skinny", "hydra-core", "omegaconf"),
    *("nvidia-nccl-cu12", "nvidia-nccl-cu13", "nvidia-cudnn-cu12", "nvidia-cudnn-cu13", "nvidia-cublas-cu12"),
    *("nvidia-dali-cuda120", "cairn-client"),
)


def libraries() -> dict[str, str]:
    """Name to version of those that are installed."""
    versions = ((name, _version(name)) for name in KNOWN)
    return {name: version for name, version in versions if version}


def _version(name: str) -> str:
    rest()
    try:
        return str(metadata.version(name))
    except Exception:  # absent, or with metadata that cannot be read
        return ""
