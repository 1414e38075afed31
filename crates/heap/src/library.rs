//! Which allocator the process has: `malloc_lib` and `use_sys_malloc`.
//!
//! A library takes the place of the system's malloc only when a program starts: so the program is started
//! once more, in its own place and with the same process id, with `LD_PRELOAD` set, as
//! `mysqld_safe --malloc-lib` does. A variable of the environment says that this has been done, and what
//! `LD_PRELOAD` was.

use std::env;
use std::ffi::OsString;
use std::fmt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What `LD_PRELOAD` was before this program set it. That it is there at all says that the program was
/// started again.
const PRELOAD_BEFORE: &str = "LATCHWORK_PRELOAD_BEFORE";
const PRELOAD: &str = "LD_PRELOAD";
/// Folders that are searched for a library by name, instead of those of the distributions; separated by
/// colons.
const FOLDERS: &str = "LATCHWORK_LIBRARY_PATH";

/// An allocator that people have as a library.
struct Library {
    name: &'static str,
    /// Names of its files, the best first.
    files: &'static [&'static str],
    /// What Debian's package is called.
    package: &'static str,
}

static LIBRARIES: [Library; 3] = [
    Library { name: "mimalloc", files: &["libmimalloc.so.3", "libmimalloc.so.2"], package: "libmimalloc2.0" },
    Library { name: "jemalloc", files: &["libjemalloc.so.2"], package: "libjemalloc2" },
    Library {
        name: "tcmalloc",
        files: &["libtcmalloc_minimal.so.4", "libtcmalloc.so.4"],
        package: "libtcmalloc-minimal4",
    },
];

/// A library that `malloc_lib` names and that is not installed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Missing {
    /// The name of its file.
    pub file: &'static str,
    /// The package of Debian that has it.
    pub package: &'static str,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is not installed; on Debian: apt-get install {}", self.file, self.package)
    }
}

/// The library that a process with this `malloc_lib` would not find. `None`: it is installed, or the value is
/// the system's allocator, a path, or no allocator's name at all.
pub fn missing_library(malloc_lib: &str) -> Option<Missing> {
    let library = LIBRARIES.iter().find(|library| library.name == malloc_lib)?;
    library.file_in(&folders()).err()
}

/// Gives the process the allocator that `malloc_lib` names (`system`, a name that people know, a path), and
/// the shared heap unless `use_sys_malloc`; may start the program again, and then does not return. Returns
/// the file's name of the library, or `system`. To be called before there is a second thread.
///
/// # Errors
/// A sentence that says what to do.
pub fn settle(malloc_lib: &str, use_sys_malloc: bool) -> Result<String, String> {
    let wanted = find(malloc_lib)?;
    let before = env::var_os(PRELOAD_BEFORE);
    let loaded = loaded_libraries();
    match wanted {
        Some(wanted) if !loaded.contains(&wanted) => {
            let problem = match before {
                Some(_) => "the system's loader did not take it".to_string(),
                None => start_again(&wanted),
            };
            return Err(format!("malloc_lib={malloc_lib}: cannot use {}: {problem}", wanted.display()));
        }
        _ => {}
    }
    if let Some(before) = before {
        // For programs that this one may start.
        // SAFETY: nobody else looks at the environment: there is one thread, as is asked of callers.
        unsafe {
            env::remove_var(PRELOAD_BEFORE);
            if before.is_empty() { env::remove_var(PRELOAD) } else { env::set_var(PRELOAD, before) }
        }
    }
    if !use_sys_malloc {
        crate::share().map_err(|error| format!("use_sys_malloc=OFF: {error}"))?;
    }
    let name = loaded.iter().find_map(|path| allocator_name(path, wanted.as_deref()));
    Ok(name.unwrap_or_else(|| "system".to_string()))
}

/// The file that `malloc_lib` means, links followed; `None` is the system's allocator.
fn find(asked: &str) -> Result<Option<PathBuf>, String> {
    if asked.is_empty() || asked == "system" {
        return Ok(None);
    }
    if asked.contains('/') {
        let path = Path::new(asked).canonicalize();
        return path.map(Some).map_err(|error| format!("malloc_lib={asked}: {error}"));
    }
    let Some(library) = LIBRARIES.iter().find(|library| library.name == asked) else {
        let names: Vec<&str> = LIBRARIES.iter().map(|library| library.name).collect();
        return Err(format!("malloc_lib={asked}: expected system, {} or a path", names.join(", ")));
    };
    library.file_in(&folders()).map(Some).map_err(|missing| format!("malloc_lib={asked}: {missing}"))
}

impl Library {
    /// Its best file in these folders, links followed.
    fn file_in(&self, folders: &[PathBuf]) -> Result<PathBuf, Missing> {
        let mut files =
            self.files.iter().flat_map(|file| folders.iter().map(move |folder| folder.join(file)));
        let found = files.find_map(|file| file.canonicalize().ok());
        found.ok_or(Missing { file: self.files[0], package: self.package })
    }
}

/// Where libraries are: the folders of [`FOLDERS`] if it is set, else those that distributions use.
fn folders() -> Vec<PathBuf> {
    if let Some(folders) = env::var_os(FOLDERS) {
        return env::split_paths(&folders).collect();
    }
    let arch = env::consts::ARCH;
    [format!("/usr/lib/{arch}-linux-gnu"), "/usr/lib64".into(), "/usr/lib".into(), "/usr/local/lib".into()]
        .map(PathBuf::from)
        .to_vec()
}

/// The files of code that this process has loaded.
fn loaded_libraries() -> Vec<PathBuf> {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let mut files: Vec<PathBuf> =
        maps.lines().filter_map(|line| Some(PathBuf::from(&line[line.find('/')?..]))).collect();
    files.dedup();
    files
}

/// The file's name, if it is the library that was asked for, or an allocator that the program was started
/// with.
fn allocator_name(path: &Path, wanted: Option<&Path>) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    let is_known = LIBRARIES.iter().any(|library| name.starts_with(&format!("lib{}", library.name)));
    (is_known || wanted == Some(path)).then(|| name.to_owned())
}

/// Returns only if that cannot be done: why.
fn start_again(library: &Path) -> String {
    let program = match env::current_exe() {
        Ok(program) => program,
        Err(error) => return format!("this program's own file is not known: {error}"),
    };
    let before = env::var_os(PRELOAD).unwrap_or_default();
    let mut preload = OsString::from(library);
    if !before.is_empty() {
        preload.push(":");
        preload.push(&before);
    }
    let mut arguments = env::args_os();
    let mut command = Command::new(program);
    if let Some(name) = arguments.next() {
        command.arg0(name);
    }
    let error = command.args(arguments).env(PRELOAD, preload).env(PRELOAD_BEFORE, before).exec();
    format!("this program cannot be started again: {error}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_is_found_by_its_name_or_its_path_or_the_error_says_what_to_do() {
        assert_eq!(find("system"), Ok(None));
        assert_eq!(find(""), Ok(None));
        let scratch = tempfile::tempdir().unwrap();
        let file = scratch.path().join("libmine.so");
        assert!(find(file.to_str().unwrap()).unwrap_err().contains("No such file"));
        std::fs::write(&file, b"").unwrap();
        assert_eq!(find(file.to_str().unwrap()), Ok(Some(file.canonicalize().unwrap())));
        assert!(
            find("dlmalloc").unwrap_err().contains("expected system, mimalloc, jemalloc, tcmalloc or a path")
        );
        for library in &LIBRARIES {
            match find(library.name) {
                Ok(found) => {
                    let name = allocator_name(&found.unwrap(), None).unwrap();
                    assert!(name.starts_with(&format!("lib{}", library.name)), "{name}");
                }
                Err(why) => assert!(why.contains(&format!("apt-get install {}", library.package)), "{why}"),
            }
        }
    }

    #[test]
    fn a_library_that_is_in_none_of_the_folders_is_named_with_its_package() {
        let scratch = tempfile::tempdir().unwrap();
        let folders = ["empty", "full"].map(|name| scratch.path().join(name));
        folders.iter().for_each(|folder| std::fs::create_dir(folder).unwrap());
        let tcmalloc = &LIBRARIES[2];
        let missing = tcmalloc.file_in(&folders).unwrap_err();
        assert_eq!(
            missing.to_string(),
            "libtcmalloc_minimal.so.4 is not installed; on Debian: apt-get install libtcmalloc-minimal4"
        );
        let file = folders[1].join("libtcmalloc.so.4");
        std::fs::write(&file, b"").unwrap();
        assert_eq!(tcmalloc.file_in(&folders), Ok(file.canonicalize().unwrap()));
        for needs_no_library in ["system", "", "/no/such/library.so", "dlmalloc"] {
            assert_eq!(missing_library(needs_no_library), None, "{needs_no_library}");
        }
    }

    #[test]
    fn what_is_loaded_is_known_by_its_file() {
        let own = env::current_exe().unwrap().canonicalize().unwrap();
        assert!(loaded_libraries().contains(&own));
        assert_eq!(allocator_name(&own, None), None);
        assert_eq!(allocator_name(&own, Some(&own)).as_deref(), own.file_name().unwrap().to_str());
    }
}
