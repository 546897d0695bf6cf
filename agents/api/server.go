package api

import (
	"context"
	"log/slog"
	"net"
	"net/http"

	"github.com/daycared/daycared/internal/wire"
)

// Options are what a [Server] needs.
type Options struct {
	Desk   Desk
	Socket string // path of agent.sock
	Group  string // whose members may ask as well; empty: this account and root only
	// Connections is how many connections one account may have at a time; 0 for the default of 1024.
	Connections int
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
}

// New makes a server. It does nothing yet.
func New(o Options) *Server { return &Server{options: o} }

// Listen opens the socket, so that what is wrong with it is known before anything else is started. Callers wait in the
// socket's queue until [Server.Run].
func (s *Server) Listen() error {
	l, err := wire.Listen(s.options.Socket, s.options.Group)
	if err != nil {
		return err
	}
	s.listener = l
	return nil
}

// Run serves until ctx ends, after [Server.Listen] if that was not called. At the end every waiting call is answered
// with its request as it stands, within a second.
func (s *Server) Run(ctx context.Context) error {
	if s.listener == nil {
		if err := s.Listen(); err != nil {
			return err
		}
	}
	door := s.door()
	guard := gate{desk: s.options.Desk, door: door}.admit
	return wire.Serve(ctx, s.listener, door.Handler(guard), s.options.Connections, s.options.Log)
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
