// Package browser opens the dashboard in a browser, as somebody who looks at a fleet does. Its test
// needs Chromium, node, playwright-core and axe-core, which .ci/run installs.
package browser
