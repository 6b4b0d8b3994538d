// Package connect reaches NATS: by options, their files, or a context of the nats
// tools. It knows nothing of a fleet.
package connect
