//! Who asks a registry: the credentials that docker, podman, skopeo, oras and crane keep, found where they would find them.
//!
//! The first file with credentials for the registry decides:
//!
//! 1. `$REGISTRY_AUTH_FILE`
//! 2. `$DOCKER_CONFIG/config.json`
//! 3. `$XDG_RUNTIME_DIR/containers/auth.json`
//! 4. `$XDG_CONFIG_HOME/containers/auth.json`, else `~/.config/containers/auth.json`
//! 5. `~/.docker/config.json`, unless `$DOCKER_CONFIG` is set
//!
//! Credentials of a repository go before those of its host, and a file may name a helper program. A file or helper that fails is told
//! of and passed over: what is public can be had without.

use std::io;
use std::path::{Path, PathBuf};

use docker_credential::{CredentialRetrievalError, DockerCredential, get_credential_from_reader};
use oci_client::secrets::RegistryAuth;
use serde_json::Value;

use super::reference::Reference;

/// As whom a registry is asked.
pub(super) struct Account {
    pub(super) auth: RegistryAuth,
    /// For people; never the secret.
    pub(super) description: String,
}

/// The account that the user's files have for this repository; nobody's else.
pub(super) fn find(reference: &Reference, env: &dyn Fn(&str) -> Option<String>) -> Account {
    let files = files(env);
    for file in &files {
        match in_file(file, reference) {
            Ok(Some((user, secret))) => {
                let description = format!("as `{user}`, from `{}`", file.display());
                return Account { auth: RegistryAuth::Basic(user, secret), description };
            }
            Ok(None) => {}
            Err(cause) => {
                let file = file.display();
                tracing::warn!("The credentials for {} in `{file}` are not used: {cause}", reference.host());
            }
        }
    }
    let looked: Vec<_> = files.iter().map(|file| format!("`{}`", file.display())).collect();
    let where_from = match looked.len() {
        0 => "no variable says where credentials would be".to_owned(),
        _ => format!("there are no credentials for it in {}", looked.join(", ")),
    };
    Account { auth: RegistryAuth::Anonymous, description: format!("anonymously: {where_from}") }
}

fn files(env: &dyn Fn(&str) -> Option<String>) -> Vec<PathBuf> {
    let folder = |name: &str| env(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let home = folder("HOME");
    let in_home = |path: &str| home.as_ref().map(|home| home.join(path));
    let config = folder("XDG_CONFIG_HOME").or_else(|| in_home(".config"));
    let docker = folder("DOCKER_CONFIG");
    let docker_at_home = if docker.is_none() { in_home(".docker") } else { None };
    let all = [
        folder("REGISTRY_AUTH_FILE"),
        docker.map(|folder| folder.join("config.json")),
        folder("XDG_RUNTIME_DIR").map(|folder| folder.join("containers/auth.json")),
        config.map(|folder| folder.join("containers/auth.json")),
        docker_at_home.map(|folder| folder.join("config.json")),
    ];
    all.into_iter().flatten().collect()
}

/// User and secret, if the file has them or names a helper that does.
fn in_file(file: &Path, reference: &Reference) -> Result<Option<(String, String)>, String> {
    let text = match std::fs::read(file) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    let config: Value = serde_json::from_slice(&text).map_err(|error| format!("it is not JSON: {error}"))?;
    match get_credential_from_reader(&text[..], &server(&config, reference)) {
        Ok(DockerCredential::UsernamePassword(user, secret)) => Ok(Some((user, secret))),
        Ok(DockerCredential::IdentityToken(_)) => {
            Err("an identity token is not understood; log in with a password or an access token".to_owned())
        }
        Err(CredentialRetrievalError::NoCredentialConfigured) => Ok(None),
        // In the words of the helpers' common library.
        Err(CredentialRetrievalError::HelperFailure { ref stdout, ref stderr, .. })
            if [stdout, stderr].iter().any(|said| said.contains("credentials not found")) =>
        {
            Ok(None)
        }
        Err(CredentialRetrievalError::HelperFailure { helper, stderr, .. }) => {
            Err(format!("`{helper}` fails: {}", stderr.lines().next().unwrap_or_default()))
        }
        Err(error) => Err(error.to_string()),
    }
}

/// The name that the file has for the registry: the longest path of namespaces that it knows, else the host.
fn server(config: &Value, reference: &Reference) -> String {
    // Docker files its own registry under the name that it had once.
    const HUB: &str = "https://index.docker.io/v1/";
    let mut name = format!("{}/{}", reference.host(), reference.repository());
    let known = |name: &str| config.get("auths").is_some_and(|auths| auths.get(name).is_some());
    while !known(&name) {
        match name.rsplit_once('/') {
            Some((shorter, _)) => name.truncate(shorter.len()),
            None if name == "docker.io" => return HUB.to_owned(),
            None => break,
        }
    }
    name
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may panic")]

    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// As whom a repository is asked for with these files below a home and these variables.
    fn account(files: &[(&str, &str)], variables: &[(&str, &str)], reference: &str) -> (RegistryAuth, String) {
        let home = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = home.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let below = |value: &str| home.path().join(value).to_str().unwrap().to_owned();
        let env = |name: &str| match name {
            "HOME" => Some(below("")),
            _ => variables.iter().find(|(known, _)| *known == name).map(|(_, value)| below(value)),
        };
        let found = find(&reference.parse().unwrap(), &env);
        (found.auth, found.description.replace(home.path().to_str().unwrap(), "~"))
    }

    fn basic(user: &str, secret: &str) -> RegistryAuth {
        RegistryAuth::Basic(user.to_owned(), secret.to_owned())
    }

    // dXNlcjpwYXNz is `user:pass`, cG9kOm1hbg== is `pod:man`.
    const DOCKER: &str = r#"{"auths": {"registry.example": {"auth": "dXNlcjpwYXNz"}}}"#;
    const PODMAN: &str = r#"{"auths": {"registry.example": {"auth": "cG9kOm1hbg=="},
        "registry.example/team": {"auth": "dXNlcjpwYXNz"}}}"#;

    #[test]
    fn the_first_file_that_knows_the_registry_decides() {
        let files = [(".docker/config.json", DOCKER), ("run/containers/auth.json", PODMAN), ("given.json", PODMAN)];
        let of = |variables: &[(&str, &str)]| account(&files, variables, "oci://registry.example/a:1").0;
        assert_eq!(of(&[]), basic("user", "pass"));
        assert_eq!(of(&[("XDG_RUNTIME_DIR", "run")]), basic("pod", "man"));
        assert_eq!(of(&[("XDG_RUNTIME_DIR", "run"), ("DOCKER_CONFIG", ".docker")]), basic("user", "pass"));
        assert_eq!(of(&[("REGISTRY_AUTH_FILE", "given.json"), ("DOCKER_CONFIG", ".docker")]), basic("pod", "man"));
        assert_eq!(of(&[("DOCKER_CONFIG", "nowhere")]), RegistryAuth::Anonymous);
    }

    #[test]
    fn a_namespace_may_have_credentials_of_its_own() {
        let of = |reference| account(&[(".config/containers/auth.json", PODMAN)], &[], reference).0;
        assert_eq!(of("oci://registry.example/team/a/b:1"), basic("user", "pass"));
        assert_eq!(of("oci://registry.example/teams/a:1"), basic("pod", "man"));
        assert_eq!(of("oci://other.example/team/a:1"), RegistryAuth::Anonymous);
        let hub = r#"{"auths": {"https://index.docker.io/v1/": {"auth": "dXNlcjpwYXNz"}}}"#;
        let (auth, _) = account(&[(".docker/config.json", hub)], &[], "oci://docker.io/me/a:1");
        assert_eq!(auth, basic("user", "pass"));
    }

    #[test]
    fn what_is_said_of_it_names_files_and_no_secret() {
        let (_, found) = account(&[(".docker/config.json", DOCKER)], &[], "oci://registry.example/a:1");
        insta::assert_snapshot!(found, @"as `user`, from `~/.docker/config.json`");
        let (auth, none) = account(&[(".docker/config.json", "{")], &[], "oci://registry.example/a:1");
        assert_eq!(auth, RegistryAuth::Anonymous);
        insta::assert_snapshot!(none, @"anonymously: there are no credentials for it in `~/.config/containers/auth.json`, `~/.docker/config.json`");
    }

    #[test]
    fn a_helper_that_is_not_there_leaves_the_account_to_nobody() {
        let config = r#"{"credHelpers": {"registry.example": "steadfast-has-no-such-helper"}}"#;
        let (auth, _) = account(&[(".docker/config.json", config)], &[], "oci://registry.example/a:1");
        assert_eq!(auth, RegistryAuth::Anonymous);
        let unreadable = tempfile::tempdir().unwrap();
        fs::set_permissions(unreadable.path(), fs::Permissions::from_mode(0o700)).unwrap();
        assert!(in_file(unreadable.path(), &"oci://registry.example/a:1".parse().unwrap()).is_err());
    }
}
