// This file lets nats.go declare functions without a body.
