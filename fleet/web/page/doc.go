// Package page draws the pages of the dashboard: components in HTML, typed, from what the read
// model answers. It is pure: it asks nobody, and what it shows is passed to it.
//
// Whatever nodes say is hostile. The components escape HTML, bound the texts that they show, and
// link to nothing but routes of the dashboard; Visible, through which every page goes, makes
// control and bidirectional characters visible.
package page

//go:generate go run ./internal/gen
