# Steadfast and its example plugins as a container image. Where to start: README.md, "The image".
#
#   docker build --tag steadfast .                    the image, without CUDA
#   docker build --target cuda --tag steadfast:cuda . the same with cuBLAS, which gemm needs on a GPU
#
# manifests ──► build ──► steadfast ──► cuda
#                             └───────► the last stage: what is built when none is named
#
# Builders that make every stage up to the one they are asked for, as buildah 1.28 does, are spared cuBLAS by `--target steadfast`.

ARG RUST_IMAGE=rust:1.95-bookworm
ARG BASE_IMAGE=debian:bookworm-slim
ARG PYTHON_IMAGE=python:3.13-slim-bookworm
# Of cuBLAS: its version, and the hashes of NVIDIA's packages of it for pip.
ARG CUBLAS=12.9.1.4
ARG CUBLAS_X86_64=sha256:453611eb21a7c1f2c2156ed9f3a45b691deda0440ec550860290dc901af5b4c2
ARG CUBLAS_AARCH64=sha256:7a950dae01add3b415a5a5cdc4ec818fb5858263e9cca59004bb99fdbbd3a5d6

# The workspace with nothing in it but manifests, and empty files where cargo wants some. Dependencies are compiled from it, in a
# layer that changes only with them: wasmtime takes minutes. The times are all one, because some builders compare them too.
FROM ${RUST_IMAGE} AS manifests
WORKDIR /src
COPY . .
RUN find . -name Cargo.toml -o -path '*/examples/*.rs' | while read -r file; do \
        mkdir -p "/skeleton/$(dirname "$file")" || exit 1; \
        case "$file" in \
            *.rs) touch "/skeleton/$file" ;; \
            *) cp "$file" "/skeleton/$file" && cd "/skeleton/$(dirname "$file")" && mkdir -p src && \
                touch src/lib.rs && echo 'fn main() {}' > src/main.rs && cd /src || exit 1 ;; \
        esac; \
    done && \
    cp -r Cargo.lock .cargo /skeleton && \
    find /skeleton -exec touch --date=@0 {} +

FROM ${RUST_IMAGE} AS build
# An image with the target already in it needs no network here.
RUN test -d "$(rustc --print target-libdir --target wasm32-wasip2)" || rustup target add wasm32-wasip2
WORKDIR /src
COPY --from=manifests /skeleton .
RUN cargo build --release --locked --package steadfast --bin steadfast && \
    for plugin in plugins/*/Cargo.toml; do \
        cargo build --release --locked --target wasm32-wasip2 --lib --manifest-path "$plugin" || exit 1; \
    done

# Sources get the time of the build: their own is older than that of the empty ones, and cargo goes by times.
COPY wit wit
COPY guest-sdk guest-sdk
COPY plugins plugins
RUN find guest-sdk plugins -name '*.rs' -exec touch {} + && \
    for plugin in plugins/*/Cargo.toml; do \
        cargo build --release --locked --target wasm32-wasip2 --lib --manifest-path "$plugin" || exit 1; \
    done && \
    mkdir -p /image/plugins && \
    cp target/wasm32-wasip2/release/*.wasm /image/plugins

COPY host host
RUN find host -name '*.rs' -exec touch {} + && \
    cargo build --release --locked --package steadfast --bin steadfast && \
    mkdir -p /image/usr/local/bin && \
    strip -o /image/usr/local/bin/steadfast target/release/steadfast

# Compiled here, so that no attempt compiles. The cache belongs to root and nobody else may write to it, which is what lets any
# user trust it. On a processor without the features of the one that builds, entries are not found and an attempt compiles.
#
# The roots that registries of plugins are trusted by come along: the base has none, and $SSL_CERT_FILE names others.
RUN STEADFAST_CACHE=/image/var/cache/steadfast /image/usr/local/bin/steadfast plugin compile /image/plugins/*.wasm && \
    mkdir -p /image/etc/ssl/certs && \
    cp /etc/ssl/certs/ca-certificates.crt /image/etc/ssl/certs/ && \
    chmod -R u=rwX,go=rX /image && \
    mkdir /checkpoints

# Debian and not something smaller: the program needs glibc, because it loads the driver of the GPU at run time, and the
# driver is made for glibc. Nothing is installed, and no command runs here: all of it is copied.
FROM ${BASE_IMAGE} AS steadfast
COPY --from=build /image/ /
# No VOLUME: engines mount something on one that is not given, which then looks to the host like the volume that was
# forgotten. The folder belongs to the user, so that a new named volume does.
COPY --from=build --chown=65532:65532 /checkpoints /checkpoints
# Read-only: what is not in it is compiled by each attempt. Scratch space is $TMPDIR or /tmp, the only place besides the
# volume that is written to.
ENV STEADFAST_CACHE=/var/cache/steadfast
# By number, so that Kubernetes can tell that it is not root.
USER 65532:65532
STOPSIGNAL SIGTERM
# Process 1 itself, with no shell before it that would keep signals. No CMD: a job without arguments must fail.
ENTRYPOINT ["/usr/local/bin/steadfast"]
# The commit is for whoever builds: docker build --label org.opencontainers.image.revision="$(git rev-parse HEAD)"
LABEL org.opencontainers.image.title="steadfast" \
      org.opencontainers.image.description="Runs long GPU batch jobs written as WebAssembly components, and carries them through preemption" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="0.1.0"

# From NVIDIA's package for pip: the one library that is needed, the same bytes wherever and whenever it is built, from a source that needs neither
# account nor setting up. NVIDIA's images hold gigabytes of other libraries, and its packages for Debian go with whatever is newest. CUDA 12's last
# cuBLAS, for it knows all GPUs from Turing to Blackwell, and works with every driver that the host's kernels work with. Results are the same to the bit
# only with the same cuBLAS: with another version or hash, a job that has begun may round its last bits otherwise from there on.
FROM ${PYTHON_IMAGE} AS cuda-libraries
ARG CUBLAS
ARG CUBLAS_X86_64
ARG CUBLAS_AARCH64
RUN echo "nvidia-cublas-cu12==$CUBLAS --hash=$CUBLAS_X86_64 --hash=$CUBLAS_AARCH64" > /requirements.txt && \
    pip install --no-cache-dir --no-deps --only-binary :all: --require-hashes --target /cuda --requirement /requirements.txt && \
    mv /cuda/*.dist-info/licenses /cuda/licenses

# The driver comes from the platform, in one of these folders or by the NVIDIA runtime; cuBLAS from here.
FROM steadfast AS cuda
COPY --from=cuda-libraries /cuda/nvidia/cublas/lib/libcublas.so.12 /cuda/nvidia/cublas/lib/libcublasLt.so.12 /usr/local/cuda/lib64/
COPY --from=cuda-libraries /cuda/licenses /usr/share/doc/cublas/
ENV LD_LIBRARY_PATH=/usr/local/nvidia/lib64:/usr/local/cuda/lib64 \
    NVIDIA_VISIBLE_DEVICES=all \
    NVIDIA_DRIVER_CAPABILITIES=compute,utility

FROM steadfast
