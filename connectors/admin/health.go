package admin

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/daycared/daycared/permissions"
)

// Channel is how one connector is.
type Channel struct {
	Name string `json:"name"`
	OK   bool   `json:"ok"`
	Text string `json:"text" doc:"what is wrong and what to do; empty when nothing is"`
}

type channels struct{ Body []Channel }

// Person is by which channels somebody can be reached.
type Person struct {
	Name string   `json:"name"`
	Via  []string `json:"via" doc:"the channels by which they can be reached; screens are not among them"`
}

type persons struct{ Body []Person }

func (r *routes) registerHealth() {
	huma.Register(r.door.API, huma.Operation{
		OperationID: "health", Method: http.MethodGet, Path: "/v1/health",
		Summary: "Tell how each channel is, where it knows",
	}, r.health)
	huma.Register(r.door.API, huma.Operation{
		OperationID: "people", Method: http.MethodGet, Path: "/v1/people",
		Summary: "Tell by which channels each person can be reached; for the operator",
	}, r.people)
}

func (r *routes) people(ctx context.Context, _ *struct{}) (*persons, error) {
	if !who(ctx).Operator {
		return nil, r.door.Refuse(permissions.OperatorOnly())
	}
	out := &persons{Body: []Person{}}
	for name, via := range r.desk.Ways() {
		out.Body = append(out.Body, Person{Name: name, Via: via})
	}
	slices.SortFunc(out.Body, func(a, b Person) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// People tells by which channels each person can be reached; for the operator.
func (c *Client) People(ctx context.Context) ([]Person, error) {
	var all []Person
	return all, c.get(ctx, "/v1/people", &all)
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
