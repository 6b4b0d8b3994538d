// Package page draws the pages of the dashboard as typed HTML components. It is pure: callers pass the data.
//
// Texts of nodes may be hostile. The components escape HTML, limit the length of texts, and link only to routes of the
// dashboard. Visible, which every page uses, makes control and bidirectional characters visible.
package page

//go:generate go run ./internal/gen
