package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/daycared/daycared/internal/wire"
	"golang.org/x/sys/unix"
)

// maxSocketPath is what the kernels we run on allow (macOS: 104 bytes with the final NUL).
const maxSocketPath = 103

// Listen opens a unix socket for this account (0600), or also for the members of group (0660; a name or number). It makes the
// folder if missing. It replaces a dead socket; a live one is an error. Closing the listener removes the socket.
func Listen(path, group string) (net.Listener, error) {
	l, err := listen(path, group)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	return l, nil
}

func listen(path, group string) (net.Listener, error) {
	if len(path) > maxSocketPath {
		return nil, fmt.Errorf("the path of a socket has at most %d bytes, and this has %d", maxSocketPath, len(path))
	}
	gid, err := GroupID(group)
	if err != nil {
		return nil, err
	}
	if err := makeFolder(filepath.Dir(path)); err != nil {
		return nil, err
	}
	if err := removeStale(path); err != nil {
		return nil, err
	}
	// On Linux the socket inherits the mode of its descriptor when bound, so nobody else can connect before chmod.
	config := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		return c.Control(func(fd uintptr) { _ = unix.Fchmod(int(fd), 0o600) })
	}}
	l, err := config.Listen(context.Background(), "unix", path)
	if err != nil {
		return nil, err
	}
	if err := admitGroup(path, gid); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

const noGroup = -1

// GroupID is the id of a group, given by name or number; -1 for none.
func GroupID(name string) (int, error) {
	if name == "" {
		return noGroup, nil
	}
	if gid, err := strconv.Atoi(name); err == nil {
		return gid, nil
	}
	g, err := user.LookupGroup(name)
	if err != nil {
		return noGroup, err
	}
	return strconv.Atoi(g.Gid)
}

// makeFolder makes the folder of a socket, which both servers share although their modes differ. An existing folder is
// left as it is.
func makeFolder(folder string) error {
	if _, err := os.Stat(folder); err == nil {
		return nil
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	return os.Chmod(folder, 0o711) //nolint:gosec // others may pass, not look; each socket has a mode of its own
}

func removeStale(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().Type() != fs.ModeSocket:
		return errors.New("there is something else of that name, which is not a socket")
	}
	c, err := (&net.Dialer{Timeout: time.Second}).DialContext(context.Background(), "unix", path)
	if err == nil {
		as := ""
		if uid, _, err := wire.PeerCredentials(c); err == nil {
			as = ", as uid " + strconv.Itoa(uid)
		}
		return errors.Join(fmt.Errorf("another daemon serves here%s; daycared status says which, and daycared stop ends it", as), c.Close())
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return err
	}
	return os.Remove(path)
}

func admitGroup(path string, gid int) error {
	if gid == noGroup {
		return os.Chmod(path, 0o600)
	}
	if err := os.Chown(path, -1, gid); err != nil {
		return err
	}
	return os.Chmod(path, 0o660) //nolint:gosec // so the group may ask
}
