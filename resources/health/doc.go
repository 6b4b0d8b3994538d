// Package health makes the health checks of resources: commands that tell their
// status by their exit code, as the plugins of Nagios do, and rules of goss. It
// only looks; what a status means for a resource is decided by its callers.
package health
