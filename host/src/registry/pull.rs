//! From a reference to the component.

use std::io;
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use oci_client::RegistryOperation;
use tokio::io::AsyncWrite;

use super::artifact::{self, ACCEPTED, Content, Layer};
use super::connection::{Connection, Fault};
use super::digest_of;
use super::downloads::Downloads;
use super::error::{RegistryError, Why};
use super::reference::Reference;

/// Far more than a manifest has; what is larger in the cache is none.
const LARGEST_MANIFEST: u64 = 4 << 20;
/// How long a manifest may take from the request to its last byte.
const MANIFEST: Duration = Duration::from_secs(60);
/// How often a download says how far it is.
const TOLD_EVERY: Duration = Duration::from_secs(10);

/// How to pull.
pub struct Pull<'a> {
    /// Where downloads are kept; none to keep none.
    pub cache: Option<&'a Path>,
    /// The most bytes that a component may have.
    pub most: u64,
}

/// A component from a registry.
pub struct Pulled {
    /// The digest of the manifest that names it.
    pub manifest: String,
    /// The component.
    pub bytes: Vec<u8>,
}

/// Gets the component. A tag is looked up now; by a digest the registry is asked only for what the cache lacks.
pub fn pull(reference: &Reference, how: &Pull<'_>) -> Result<Pulled, RegistryError> {
    let mut puller = Puller { reference, downloads: Downloads::below(how.cache), connection: None };
    let (manifest, layer) = puller.layer()?;
    if layer.size > how.most {
        let size = |bytes| bytesize::ByteSize::b(bytes).display().iec();
        let found = format!("a component of {}, and no plugin is larger than {}", size(layer.size), size(how.most));
        return Err(RegistryError::new("get", reference, Why::TooLarge { found }));
    }
    let bytes = puller.component(&layer)?;
    Ok(Pulled { manifest, bytes })
}

struct Puller<'a> {
    reference: &'a Reference,
    downloads: Downloads,
    /// Made when it is needed.
    connection: Option<Connection>,
}

impl Puller<'_> {
    fn connection(&mut self) -> Result<&Connection, RegistryError> {
        let connection = match self.connection.take() {
            Some(connection) => connection,
            None => Connection::open(RegistryOperation::Pull, self.reference)?,
        };
        Ok(self.connection.insert(connection))
    }

    /// The manifest that names the component, by its digest, and what it says of it.
    fn layer(&mut self) -> Result<(String, Layer), RegistryError> {
        let (digest, manifest) = self.manifest(self.reference)?;
        let inner = match self.read(&manifest)? {
            Content::Component(layer) => return Ok((digest, layer)),
            Content::Manifest(inner) => inner,
        };
        let (digest, manifest) = self.manifest(&self.reference.with_digest(&inner))?;
        match self.read(&manifest)? {
            Content::Component(layer) => Ok((digest, layer)),
            Content::Manifest(_) => Err(self.no_plugin("an index in an index".to_owned())),
        }
    }

    fn read(&self, manifest: &[u8]) -> Result<Content, RegistryError> {
        artifact::read(manifest).map_err(|found| self.no_plugin(found))
    }

    fn no_plugin(&self, found: String) -> RegistryError {
        RegistryError::new("get", self.reference, Why::NoPlugin { found })
    }

    fn manifest(&mut self, of: &Reference) -> Result<(String, Vec<u8>), RegistryError> {
        let kept = of.digest().and_then(|digest| Some((digest, self.downloads.get(digest, LARGEST_MANIFEST)?)));
        if let Some((digest, manifest)) = kept {
            return Ok((digest.to_owned(), manifest));
        }
        let manifest = self.connection()?.ask(&of.for_client(), async |client, named| {
            let anonymous = &oci_client::secrets::RegistryAuth::Anonymous;
            let request = client.pull_manifest_raw(named, anonymous, &ACCEPTED);
            match tokio::time::timeout(MANIFEST, request).await {
                Ok(answer) => Ok(answer?.0.to_vec()),
                Err(_) => Err(Fault::Passing("its manifest takes too long".to_owned())),
            }
        })?;
        let digest = digest_of(&manifest);
        self.downloads.put(&digest, &manifest);
        Ok((digest, manifest))
    }

    fn component(&mut self, layer: &Layer) -> Result<Vec<u8>, RegistryError> {
        if let Some(bytes) = self.downloads.get(&layer.digest, layer.size) {
            return Ok(bytes);
        }
        let reference = self.reference;
        let size = bytesize::ByteSize::b(layer.size).display().iec();
        tracing::info!(bytes = layer.size, "Downloading the plugin {reference} ({size})");
        let bytes = self.connection()?.ask(&reference.for_client(), async |client, named| {
            let mut sink = Sink::new(layer.size);
            client.pull_blob(named, layer.digest.as_str(), &mut sink).await?;
            Ok(sink.bytes)
        })?;
        self.downloads.put(&layer.digest, &bytes);
        Ok(bytes)
    }
}

/// Takes a component as it arrives, no more of it than was announced.
struct Sink {
    bytes: Vec<u8>,
    size: u64,
    told: Instant,
}

impl Sink {
    fn new(size: u64) -> Self {
        // Room is made as it comes: a size is announced more easily than sent.
        Self { bytes: Vec::new(), size, told: Instant::now() }
    }

    fn take(&mut self, more: &[u8]) -> io::Result<usize> {
        let have = (self.bytes.len() + more.len()) as u64;
        if have > self.size {
            let what = format!("more arrives than the {} bytes that its manifest announces", self.size);
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, what));
        }
        self.bytes.extend_from_slice(more);
        if self.told.elapsed() >= TOLD_EVERY {
            self.told = Instant::now();
            let size = |bytes| bytesize::ByteSize::b(bytes).display().iec();
            tracing::info!(bytes = have, "Downloaded {} of {}", size(have), size(self.size));
        }
        Ok(more.len())
    }
}

impl AsyncWrite for Sink {
    fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, more: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(self.take(more))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
