"""BLAS keeps to one thread where asked, and gets its threads back when the last one who asked has left."""

import numpy as np
from threadpoolctl import threadpool_info, threadpool_limits

from lptml._threads import share_out, single_threaded


def blas_threads():
    np.ones((2, 2)) @ np.ones((2, 2))
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def test_the_last_to_leave_takes_the_limit_back():
    with threadpool_limits(limits=2, user_api="blas"):
        before = blas_threads()
        first, second = single_threaded(), single_threaded()
        first.__enter__()
        second.__enter__()
        assert blas_threads() == {1}
        first.__exit__(None, None, None)  # not the last one that entered, as it happens with threads
        assert blas_threads() == {1}
        second.__exit__(None, None, None)
        assert blas_threads() == before


def test_no_limit_without_need():
    with threadpool_limits(limits=2, user_api="blas"):
        before = blas_threads()
        with single_threaded(False):
            assert blas_threads() == before


def test_work_is_shared_out_in_order():
    assert share_out(lambda k: (k, blas_threads()), [3, 1, 2]) == [(3, {1}), (1, {1}), (2, {1})]
