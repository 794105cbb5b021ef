"""Compiles CUDA C to PTX with NVRTC, which needs no GPU: nvrtc.py ARCHITECTURE SOURCE PTX [SOURCE PTX ...]"""

import ctypes
import pathlib
import sys

import nvidia.cuda_nvrtc
import nvidia.cuda_runtime


def folder(package):
    return pathlib.Path(list(package.__path__)[0])


NVRTC = ctypes.CDLL(str(folder(nvidia.cuda_nvrtc) / "lib" / "libnvrtc.so.12"))
NVRTC.nvrtcGetErrorString.restype = ctypes.c_char_p
INCLUDE = folder(nvidia.cuda_runtime) / "include"


def text_of(size, get, program):
    length = ctypes.c_size_t()
    size(program, ctypes.byref(length))
    text = ctypes.create_string_buffer(length.value)
    get(program, text)
    return text.value.decode()


def compile(source, architecture):
    program = ctypes.c_void_p()
    # The name alone, without a folder: it becomes part of names in the PTX.
    name = pathlib.Path(source).name.encode()
    code = pathlib.Path(source).read_bytes()
    status = NVRTC.nvrtcCreateProgram(ctypes.byref(program), code, name, 0, None, None)
    includes = [f"--include-path={folder}" for folder in (INCLUDE, pathlib.Path(source).parent)]
    options = [option.encode() for option in (f"--gpu-architecture={architecture}", *includes)]
    if status == 0:
        arguments = (ctypes.c_char_p * len(options))(*options)
        status = NVRTC.nvrtcCompileProgram(program, len(options), arguments)
    if status != 0:
        sys.stderr.write(text_of(NVRTC.nvrtcGetProgramLogSize, NVRTC.nvrtcGetProgramLog, program))
        sys.exit(f"{source}: {NVRTC.nvrtcGetErrorString(status).decode()}")
    return text_of(NVRTC.nvrtcGetPTXSize, NVRTC.nvrtcGetPTX, program)


def main():
    architecture, *pairs = sys.argv[1:]
    for source, ptx in zip(pairs[::2], pairs[1::2]):
        pathlib.Path(ptx).write_text(compile(source, architecture))


main()
