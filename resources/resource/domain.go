package resource

// Domain is a part of the machine that states describe and changes alter. A
// change invalidates every state of its domains. Domains are combined with |.
type Domain uint8

// The domains.
const (
	Paths Domain = 1 << iota
	Packages
	Units
	Accounts
	// Everything are all domains, for an arbitrary command.
	Everything Domain = 0xff
)

// Overlaps reports whether d and other have a domain in common.
func (d Domain) Overlaps(other Domain) bool { return d&other != 0 }
