//! The methods that a file tree around another one passes on unchanged. Each such tree writes down only what
//! it does differently.

/// In an `impl Vfs`: everything about names goes to the field `$inner`, but for `sync_dir`.
macro_rules! forward_names {
    ($inner:tt) => {
        fn exists(&self, path: &std::path::Path) -> std::io::Result<bool> {
            self.$inner.exists(path)
        }

        fn remove(&self, path: &std::path::Path) -> std::io::Result<()> {
            self.$inner.remove(path)
        }

        fn rename(&self, from: &std::path::Path, to: &std::path::Path) -> std::io::Result<()> {
            self.$inner.rename(from, to)
        }

        fn list(&self, dir: &std::path::Path) -> std::io::Result<Vec<std::path::PathBuf>> {
            self.$inner.list(dir)
        }

        fn create_dir_all(&self, dir: &std::path::Path) -> std::io::Result<()> {
            self.$inner.create_dir_all(dir)
        }

        fn remove_dir(&self, dir: &std::path::Path) -> std::io::Result<()> {
            self.$inner.remove_dir(dir)
        }
    };
}

/// In an `impl File`: length, room and lock are those of the field `$inner`.
macro_rules! forward_size_and_lock {
    ($inner:tt) => {
        fn len(&self) -> std::io::Result<u64> {
            self.$inner.len()
        }

        fn set_len(&self, len: u64) -> std::io::Result<()> {
            self.$inner.set_len(len)
        }

        fn reserve(&self, len: u64) -> std::io::Result<()> {
            self.$inner.reserve(len)
        }

        fn discard(&self, offset: u64, len: u64) -> std::io::Result<()> {
            self.$inner.discard(offset, len)
        }

        fn try_lock_exclusive(&self) -> std::io::Result<()> {
            self.$inner.try_lock_exclusive()
        }
    };
}

pub(crate) use {forward_names, forward_size_and_lock};
