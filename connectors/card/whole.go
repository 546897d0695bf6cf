package card

import (
	"sync"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/permissions"
)

// mostWhole is how many requests it is remembered of whether they fit.
const mostWhole = 10_000

// Whole remembers of requests whether a channel can show them whole, which takes making their card. The zero Whole
// remembers nothing. It is safe for concurrent use.
type Whole struct {
	mu   sync.Mutex
	fits map[permissions.ID]bool
}

// Note says whether a request could be shown whole.
func (w *Whole) Note(id permissions.ID, fits bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fits == nil || len(w.fits) >= mostWhole {
		w.fits = map[permissions.ID]bool{}
	}
	w.fits[id] = fits
}

// Fits tells whether p can be shown whole: as it is remembered, else as tooBig says.
func (w *Whole) Fits(p connectors.Prompt, tooBig func(connectors.Prompt) bool) bool {
	w.mu.Lock()
	fits, known := w.fits[p.Request.ID]
	w.mu.Unlock()
	if !known {
		fits = !tooBig(p)
		w.Note(p.Request.ID, fits)
	}
	return fits
}
