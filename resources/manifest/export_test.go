package manifest

import "net/http"

// NewClient is the client that a loader makes for itself.
func NewClient() *http.Client { return newClient() }
