//go:build nodemo

package demo

import "errors"

// serve fails: the program of the packages has no nats-server in it, whose code and timers each agent
// would carry. The demo is for those who have no package yet.
func serve(string, string) (*embedded, error) {
	return nil, errors.New("this build of muster has no NATS server for the demo: in a clone of the repository, run go run ./cmd/muster demo")
}
