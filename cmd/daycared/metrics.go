package main

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/engine"
)

// scrapeTime bounds the store queries of one scrape.
const scrapeTime = 5 * time.Second

// gauges report the daemon's state at the time of a scrape. They contain no text from people or agents.
type gauges struct {
	engine *engine.Engine
	log    *slog.Logger

	up, state, ready, reachable, stopped, pending *prometheus.Desc
}

// metrics serves /metrics.
func metrics(e *engine.Engine, log *slog.Logger) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		&gauges{
			engine: e, log: log,
			up: prometheus.NewDesc("daycared_channel_up",
				"1 while a channel is connected and nothing is wrong with the accounts of people there, else 0; doctor says why.",
				[]string{"channel"}, nil),
			state: prometheus.NewDesc("daycared_channel_state",
				"1 for how a channel stands that is not up and says it in a word, such as banned or outdated.",
				[]string{"channel", "state"}, nil),
			ready: prometheus.NewDesc("daycared_ready", "1 while requests can be stored and answered.", nil, nil),
			reachable: prometheus.NewDesc("daycared_people_reachable",
				"How many people can be reached just now; while it is 0, what is asked fails at once.", nil, nil),
			stopped: prometheus.NewDesc("daycared_stopped", "1 while everything is stopped.", nil, nil),
			pending: prometheus.NewDesc("daycared_requests_pending", "Requests that wait for an answer.", nil, nil),
		},
	)
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
}

// Describe implements [prometheus.Collector].
func (g *gauges) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{g.up, g.state, g.ready, g.reachable, g.stopped, g.pending} {
		out <- d
	}
}

// Collect implements [prometheus.Collector]. It omits what cannot be read now.
func (g *gauges) Collect(out chan<- prometheus.Metric) {
	ctx, done := context.WithTimeout(context.Background(), scrapeTime)
	defer done()
	say := func(d *prometheus.Desc, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	for channel, err := range g.engine.Health() {
		say(g.up, truth(err == nil), channel)
		if stated := connectors.StateError(nil); errors.As(err, &stated) {
			say(g.state, 1, channel, stated.State())
		}
	}
	say(g.ready, truth(g.engine.Ready(ctx) == nil))
	reachable := map[string]bool{}
	for _, c := range g.engine.Contacts() {
		for name := range c.People {
			if c.Reaches(name) {
				reachable[name] = true
			}
		}
	}
	say(g.reachable, float64(len(reachable)))
	say(g.stopped, truth(g.engine.StoppedBy() != ""))
	if n, err := g.engine.CountPending(ctx); err == nil {
		say(g.pending, float64(n))
	} else {
		g.log.Warn("count pending requests", "err", err)
	}
}

func truth(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
