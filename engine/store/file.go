package store

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// draftSuffix ends the name of a file that is not complete yet.
const draftSuffix = ".part"

// WriteFile gives a file a content and a mode, or leaves it as it was: whatever happens meanwhile, a power cut too, there is
// the old file or the new one under its name. The error says only what went wrong, not where.
func WriteFile(path string, content []byte, mode os.FileMode) (err error) {
	draft := path + draftSuffix
	if err := os.Remove(draft); err != nil && !errors.Is(err, fs.ErrNotExist) { // of a try that was killed
		return err
	}
	f, err := os.OpenFile(draft, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(draft, path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(draft))
	}
	return syncFolder(filepath.Dir(path))
}

// syncFolder makes a new name in a folder durable.
func syncFolder(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }() // only read
	return d.Sync()
}

// cause is a file's error without the path, which the sentence around it names already.
func cause(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
