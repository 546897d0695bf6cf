package permissions

import "time"

const (
	// MaxStrangers is how many strangers are kept by name for the owner to hear of; of more it is only counted how many.
	MaxStrangers = 100
	// StrangersEvery is how often the owner hears of strangers, at most.
	StrangersEvery = 24 * time.Hour
)

// Stranger is an account of nobody here that wrote. Nothing that it wrote is kept.
type Stranger struct {
	Via     string // the channel
	Account string // as the channel proves it
	Name    string // what they claim to be called: anything, at most [MaxName] characters
	At      time.Time
}

// Strangers are those whom the owner was not told of yet.
type Strangers struct {
	List   []Stranger // at most [MaxStrangers], the first that wrote first
	More   int        // how many more were met; one that is met again counts again
	UpTo   int64      // the store's number of the last
	ToldAt time.Time  // when the owner was told last, if that is not longer ago than [StrangersEvery]
}

// Count is how many there are.
func (s Strangers) Count() int { return len(s.List) + s.More }
