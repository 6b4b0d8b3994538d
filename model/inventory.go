package model

import "time"

// Package is an installed package of a node.
type Package struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	Arch    string `json:"arch,omitempty"`
	// Manager is deb or rpm, the scheme of the version.
	Manager string `json:"manager"`
}

// MaxPackages is the maximum number of packages in an inventory.
const MaxPackages = 100_000

// Inventory lists the packages installed on a node.
type Inventory struct {
	Node string    `json:"node"`
	At   time.Time `json:"at"`
	// Packages are sorted by name.
	Packages []Package `json:"packages"`
	// Incomplete is the reason why versions or packages are missing; empty if the inventory is complete.
	Incomplete string `json:"incomplete,omitempty"`
	// Unreadable is the reason why a stored inventory cannot be decoded. It is never stored.
	Unreadable string `json:"-"`
}
