package webhooks

// RandomJob is for the tests of the gate as a whole.
var RandomJob = randomJob
