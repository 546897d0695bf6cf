package permissions

import "time"

// Move says that a place of several people goes by another name since a time, as a group does that becomes a supergroup.
type Move struct {
	Was, Now string
	At       time.Time
}
