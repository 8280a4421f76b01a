"""What points say before any metric is learned: robust scatter, nearest neighbours, prior metrics."""
