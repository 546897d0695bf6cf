package admin

import (
	"context"
	"net/http"

	"github.com/daycared/daycared/internal/wire"
)

// stopped is what stop-all did.
type stopped struct {
	Cancelled int `json:"cancelled"`
}

type stoppedOutput struct{ Body stopped }

func (r *routes) stop(ctx context.Context, _ *struct{}) (*stoppedOutput, error) {
	n, err := r.desk.StopAll(ctx, who(ctx))
	if err != nil {
		return nil, r.door.Refuse(err)
	}
	return &stoppedOutput{Body: stopped{Cancelled: n}}, nil
}

func (r *routes) resume(ctx context.Context, _ *struct{}) (*struct{ Body struct{} }, error) {
	if err := r.desk.Resume(ctx, who(ctx)); err != nil {
		return nil, r.door.Refuse(err)
	}
	return &struct{ Body struct{} }{}, nil
}

// StopAll cancels everything that is pending and has everything new refused until [Client.Resume]. It returns how many
// requests it cancelled.
func (c *Client) StopAll(ctx context.Context) (cancelled int, err error) {
	var told stopped
	// Much may be pending.
	err = c.wire.Call(ctx, http.MethodPost, "/v1/stop-all", c.header(""), nil, wire.MaxWait, &told)
	return told.Cancelled, err
}

// Resume ends what [Client.StopAll] began. Where nothing is stopped it changes nothing.
func (c *Client) Resume(ctx context.Context) error {
	return c.wire.Call(ctx, http.MethodPost, "/v1/resume", c.header(""), nil, 0, nil)
}
