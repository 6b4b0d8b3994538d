// Package health runs the health checks of resources: commands with the exit
// codes of Nagios plugins, and goss rules. It only observes; callers decide
// what a status means for a resource.
package health
