// Package runner runs the active manifests of a node. Manifests follows the assignments, starts the
// runs and health check passes that are due, and records their results. Runner makes one run, Lanes
// decides which runs work at the same time, Schedule decides which manifest runs next, and Registrar
// registers services.
package runner
