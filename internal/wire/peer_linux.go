package wire

import "golang.org/x/sys/unix"

// peerUID is the account at the other end of a connected unix socket, as it was when it connected (unix(7),
// SO_PEERCRED).
func peerUID(fd int) (int, error) {
	cred, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return 0, err
	}
	return int(cred.Uid), nil
}
