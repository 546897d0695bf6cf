package admin

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// Channel is how one connector is.
type Channel struct {
	Name string `json:"name"`
	OK   bool   `json:"ok"`
	Text string `json:"text" doc:"what is wrong and what to do; empty when nothing is"`
}

type channels struct{ Body []Channel }

func (r *routes) registerHealth() {
	huma.Register(r.door.API, huma.Operation{
		OperationID: "health", Method: http.MethodGet, Path: "/v1/health",
		Summary: "Tell how each channel is, where it knows",
	}, r.health)
}

func (r *routes) health(ctx context.Context, _ *struct{}) (*channels, error) {
	if _, err := r.desk.Who(who(ctx)); err != nil {
		return nil, r.door.Refuse(err)
	}
	out := &channels{Body: []Channel{}}
	for name, err := range r.desk.Health() {
		c := Channel{Name: name, OK: err == nil}
		if err != nil {
			c.Text = err.Error()
		}
		out.Body = append(out.Body, c)
	}
	slices.SortFunc(out.Body, func(a, b Channel) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// Health tells how each channel is, where it knows.
func (c *Client) Health(ctx context.Context) ([]Channel, error) {
	var all []Channel
	return all, c.get(ctx, "/v1/health", &all)
}
