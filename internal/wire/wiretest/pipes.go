package wiretest

import "net"

// Pipes is a listener of a network within the process, so that time can be virtual. Nobody is known to be at the other
// end. It is closed once.
type Pipes struct {
	conns chan net.Conn
	done  chan struct{}
}

// NewPipes makes a network of its own.
func NewPipes() *Pipes { return &Pipes{conns: make(chan net.Conn), done: make(chan struct{})} }

// Dial connects to whoever serves it.
func (p *Pipes) Dial() net.Conn {
	near, far := net.Pipe()
	p.conns <- far
	return near
}

// Accept is that of [net.Listener].
func (p *Pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

// Close is that of [net.Listener].
func (p *Pipes) Close() error {
	close(p.done)
	return nil
}

// Addr is that of [net.Listener].
func (p *Pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }
