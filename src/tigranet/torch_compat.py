"""Every private PyTorch API that tigranet uses, in one place.

Private names change between PyTorch versions. Each one is looked up here when it is first needed. Where a name is
missing, :class:`MissingTorchAPIError` says which one, or the function below gives the answer that is safe without it;
the fused kernels that need the name are then switched off with a warning, and plain PyTorch computes the result.
"""

from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from typing import Any, TypeVar

import torch
from torch import Tensor

Function = TypeVar("Function", bound=Callable[..., Any])


class MissingTorchAPIError(RuntimeError):
    """This version of PyTorch lacks a private function that the fused kernels need."""


@cache
def private(module: str, name: str) -> Any:
    """Look up a private object of PyTorch.

    Args:
        module: Dotted name of the module, such as ``"torch.cuda._utils"``.
        name: Dotted name of the object inside the module.

    Returns:
        The object.

    Raises:
        MissingTorchAPIError: If this version of PyTorch does not have it.
    """
    try:
        value: Any = import_module(module)
        for attribute in name.split("."):
            value = getattr(value, attribute)
    except (ImportError, AttributeError):
        raise MissingTorchAPIError(f"PyTorch {torch.__version__} has no {module}.{name}") from None
    return value


def constant_while_tracing(function: Function) -> Function:
    """Decorate a function that ``torch.compile`` evaluates once, while it traces, instead of tracing through it.

    The public decorator, :func:`torch.compiler.assume_constant_result`, sets the same mark but imports the whole
    compiler, which takes a second at every start.

    Args:
        function: A function of Python values, no tensors.

    Returns:
        The same function.
    """
    function._dynamo_marked_constant = True  # type: ignore[attr-defined]
    return function


@constant_while_tracing
def missing_for_dispatch() -> str | None:
    """Name the private API whose absence makes every fused kernel unsafe.

    Without it the package cannot tell whether a functorch transform is active, and no kernel supports one.

    Returns:
        The reason, or None if this version of PyTorch has all that is needed.
    """
    try:
        private("torch", "_C._functorch.peek_interpreter_stack")
        private("torch.autograd.forward_ad", "_current_level")
    except MissingTorchAPIError as error:
        return str(error)
    return None


@constant_while_tracing
def in_function_transform() -> bool:
    """Return whether a functorch transform (``vmap``, ``jvp``, ...) or forward-mode differentiation is active.

    Call it only where :func:`missing_for_dispatch` is None.
    """
    return torch._C._functorch.peek_interpreter_stack() is not None or torch.autograd.forward_ad._current_level >= 0


def knows_memory_formats() -> bool:
    """Return whether tensors can be asked for their memory format, such as channels last: inside ``vmap`` they cannot.

    Another format has the same numbers, and convolutions may take longer.
    """
    return missing_for_dispatch() is not None or not in_function_transform()


def is_observed(tensors: Sequence[Tensor]) -> bool:
    """Return whether a compiler, a tracer, a dispatch mode or a tensor subclass observes operations on tensors.

    Where this version of PyTorch cannot tell, the answer is True: the registered operator is always correct, only
    slower to call.

    Args:
        tensors: The tensors among the arguments of an operator.

    Returns:
        Whether the operator has to be called through PyTorch's dispatcher.
    """
    if torch.compiler.is_compiling():
        return True
    try:
        tracing = private("torch", "_C._get_tracing_state")() is not None
        mode = private("torch.utils._python_dispatch", "_get_current_dispatch_mode")() is not None
    except MissingTorchAPIError:
        return True
    return tracing or mode or any(type(tensor) not in (Tensor, torch.nn.Parameter) for tensor in tensors)


def no_function_override() -> Any:
    """Return what a tensor subclass sets as ``__torch_function__`` to leave all functions of PyTorch as they are.

    Where this version of PyTorch has no such mark, it is the method of ordinary tensors, which is only slower.
    """
    try:
        return private("torch", "_C._disabled_torch_function_impl")
    except MissingTorchAPIError:
        return Tensor.__torch_function__


def tensor_without_numbers(kind: type[Tensor], shape: Sequence[int], dtype: torch.dtype) -> Any:
    """Create a tensor of a subclass that has a shape, a type and the CPU as its device, but no memory.

    Args:
        kind: The subclass.
        shape: The shape.
        dtype: The type of the numbers.

    Returns:
        The tensor.

    Raises:
        MissingTorchAPIError: If this version of PyTorch cannot create one.
    """
    create = private("torch", "Tensor._make_wrapper_subclass")
    return create(kind, tuple(shape), dtype=dtype, device=torch.device("cpu"))


def nvrtc_compile() -> Callable[..., Any]:
    """Return PyTorch's function that compiles CUDA C++ at run time.

    Raises:
        MissingTorchAPIError: If this version of PyTorch does not have it.
    """
    return private("torch.cuda._utils", "_nvrtc_compile")


def load_cuda_module() -> Callable[..., Any]:
    """Return PyTorch's function that loads a compiled CUDA module.

    Raises:
        MissingTorchAPIError: If this version of PyTorch does not have it.
    """
    return private("torch.cuda._utils", "_cuda_load_module")


def cuda_driver_library() -> Any:
    """Return the CUDA driver as a ctypes library.

    Raises:
        MissingTorchAPIError: If this version of PyTorch does not have the function that finds it.
    """
    return private("torch.cuda._utils", "_get_gpu_runtime_library")()
