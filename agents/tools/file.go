package tools

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"syscall"
	"unicode/utf8"

	"github.com/oklog/ulid/v2"
)

// The operations here run in a sandbox, in a separate process.

// maxFile is the largest file, in bytes, that is read or written as a whole.
const maxFile = 1 << 20

// at runs do in the spot's root folder, after checking its identity.
func (s spot) at(do func(*os.Root) error) error {
	root, err := os.OpenRoot(s.Root)
	if err != nil {
		return err
	}
	info, err := root.Stat(".")
	if err == nil {
		err = s.Held.Check(s.Root, info)
	}
	if err == nil {
		err = do(root)
	}
	return errors.Join(err, root.Close())
}

// open opens a regular file for reading. It refuses what may block or is endless.
func (s spot) open() (f *os.File, info fs.FileInfo, err error) {
	const flags = os.O_RDONLY | syscall.O_NONBLOCK // a pipe without a writer
	if s.Root == "" {
		f, err = os.OpenFile(s.Name, flags|syscall.O_NOFOLLOW, 0)
	} else {
		err = s.at(func(root *os.Root) (err error) {
			f, err = root.OpenFile(s.Name, flags, 0)
			return err
		})
	}
	if err != nil {
		return nil, nil, err
	}
	if info, err = f.Stat(); err == nil {
		err = regular(info)
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, info, nil
}

func regular(info fs.FileInfo) error {
	switch {
	case info.IsDir():
		return errors.New("it is a folder")
	case !info.Mode().IsRegular():
		return errors.New("it is no regular file")
	}
	return nil
}

type fileContent struct {
	There bool
	Text  []byte
	Basis string // identifies this content
}

// content reads a whole file. A missing one is no error.
func content(s spot) (fileContent, error) {
	f, info, err := s.open()
	if errors.Is(err, fs.ErrNotExist) {
		return fileContent{Basis: nothing}, nil
	}
	if err != nil {
		return fileContent{}, err
	}
	defer f.Close()
	if info.Size() > maxFile {
		return fileContent{}, fmt.Errorf("it has %d bytes, more than the %d that can be changed", info.Size(), maxFile)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(text) > maxFile {
		err = fmt.Errorf("it has more than the %d bytes that can be changed", maxFile)
	}
	return fileContent{There: true, Text: text, Basis: basis(text)}, err
}

// nothing is the basis of a missing file.
const nothing = "no file"

func basis(text []byte) string {
	sum := sha256.Sum256(text)
	return "sha256 " + hex.EncodeToString(sum[:])
}

// isText reports whether a text can be shown as it is.
func isText(text []byte) bool { return utf8.Valid(text) && bytes.IndexByte(text, 0) < 0 }

type putInput struct {
	Spot  spot
	Text  []byte
	Basis string // the expected content; empty: any
}

// put replaces or creates a file, with its folders, atomically and durably. The mode is kept. It returns whether the file existed.
func put(p putInput) (there bool, err error) {
	err = p.Spot.at(func(root *os.Root) error {
		there, err = putIn(root, p)
		return err
	})
	return there, err
}

func putIn(root *os.Root, p putInput) (there bool, err error) {
	name, mode := p.Spot.Name, fs.FileMode(0o644)
	info, err := root.Lstat(name)
	switch {
	case err == nil && info.Mode()&fs.ModeSymlink != 0:
		return false, errors.New("it is a symbolic link; name the file that it leads to")
	case err == nil:
		if err := regular(info); err != nil {
			return true, err
		}
		there, mode = true, info.Mode().Perm()
	case !errors.Is(err, fs.ErrNotExist):
		return false, err
	}
	if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return there, err
	}
	draft := path.Join(path.Dir(name), ".daycared-"+ulid.Make().String())
	if err := writeSynced(root, draft, p.Text, mode, there); err != nil {
		return there, errors.Join(err, remove(root, draft))
	}
	if err = unchanged(p); err == nil {
		err = root.Rename(draft, name)
	}
	if err != nil {
		return there, errors.Join(err, remove(root, draft))
	}
	return there, syncFolder(root, path.Dir(name))
}

func unchanged(p putInput) error {
	if p.Basis == "" {
		return nil
	}
	now, err := content(p.Spot)
	if err == nil && now.Basis != p.Basis {
		err = errChanged
	}
	return err
}

var errChanged = errors.New("it has changed since it was shown; look again")

func writeSynced(root *os.Root, name string, text []byte, mode fs.FileMode, keep bool) error {
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err == nil && keep { // regardless of the umask
		err = f.Chmod(mode)
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

func remove(root *os.Root, name string) error {
	if err := root.Remove(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func syncFolder(root *os.Root, name string) error {
	dir, err := root.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
