package api

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"

	"golang.org/x/sync/errgroup"

	"github.com/daycared/daycared/internal/wire"
)

// Options are what a [Server] needs.
type Options struct {
	Desk   Desk
	Socket string // path of agent.sock
	Group  string // whose members may ask as well; empty: this account and root only
	// Connections is how many connections one account may have at a time; 0 for the default of 1024.
	Connections int
	// CallsPerSecond is how often one caller may call; 0 for the default of 500, and 2000 at once.
	CallsPerSecond int
	// TCP is a listener for agents that run elsewhere; nil: there is none.
	TCP *TCP
	// Metrics answers /metrics; nil: nothing does.
	Metrics http.Handler
	// Mounts answer besides the door's own routes, each what matches its pattern (as of [http.ServeMux]: "/mcp",
	// "POST /hook/{dialect}"). They stand behind the same admission and the same proof of the caller ([CallerOf]), and
	// what they are given to read is JSON within bounds, read whole already. Their answers may go on for as long as they
	// like ([wire.Stream]); their calls' contexts end when the daemon stops.
	Mounts map[string]http.Handler
	Log    *slog.Logger
}

// Server is the agents' door.
type Server struct {
	options  Options
	listener net.Listener
	remote   *remote // nil without
}

// New makes a server. It does nothing yet.
func New(o Options) *Server { return &Server{options: o} }

// Listen opens the socket, and the TCP listener if there is to be one, so that what is wrong with them is known before
// anything else is started. Callers wait in the listeners' queues until [Server.Run].
func (s *Server) Listen() error {
	l, err := wire.Listen(s.options.Socket, s.options.Group)
	if err != nil {
		return err
	}
	if s.options.TCP != nil {
		if s.remote, err = s.listenTCP(*s.options.TCP); err != nil {
			return errors.Join(err, l.Close())
		}
	}
	s.listener = l
	return nil
}

// Address is where the TCP listener listens, after [Server.Listen]; nil without one.
func (s *Server) Address() net.Addr {
	if s.remote == nil {
		return nil
	}
	return s.remote.listener.Addr()
}

// Routes are the patterns of everything that agents may reach here, in order: what has none is not there.
func (s *Server) Routes() []string { return s.door().Routes() }

// Run serves until ctx ends, after [Server.Listen] if that was not called. At the end every waiting call is answered
// with its request as it stands, within a second.
func (s *Server) Run(ctx context.Context) error {
	if s.listener == nil {
		if err := s.Listen(); err != nil {
			return err
		}
	}
	door := s.door()
	g := gate{desk: s.options.Desk, door: door, pace: newPace(s.options.CallsPerSecond)}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		h := door.Handler(wire.Entrance{Guard: g.admit})
		return wire.Serve(ctx, s.listener, h, s.options.Connections, s.options.Log)
	})
	if s.remote != nil {
		group.Go(func() error { return s.remote.serve(ctx, door, g, s.options) })
	}
	return group.Wait()
}

// door has all that agents may reach.
func (s *Server) door() *wire.Door {
	door := wire.NewDoor("daycared for agents", s.options.Desk.Ready, s.options.Log)
	(&routes{desk: s.options.Desk, door: door}).register()
	if s.options.Metrics != nil {
		door.Metrics(s.options.Metrics)
	}
	for pattern, h := range s.options.Mounts {
		door.Handle(pattern, wire.Stream(h))
	}
	return door
}
