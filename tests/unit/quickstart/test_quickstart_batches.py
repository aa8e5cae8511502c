from alipes.quickstart.batches import BatchGroup, BatchStatistic, grouped, since


def test_only_what_happened_between_two_looks_counts() -> None:
    before = [BatchStatistic(1, 10, 1_000), BatchStatistic(4, 2, 500)]
    after = [BatchStatistic(1, 13, 1_600), BatchStatistic(4, 2, 500), BatchStatistic(9, 1, 90)]
    assert since(before, after) == [BatchStatistic(1, 3, 600), BatchStatistic(9, 1, 90)]


def test_similar_batch_sizes_share_a_line() -> None:
    batches = [BatchStatistic(rows, 1, 10) for rows in (1, 2, 3, 4, 5, 8, 9, 64)]
    assert [(group.label, group.count, group.rows) for group in grouped(batches)] == [
        ("1", 1, 1),
        ("2", 1, 2),
        ("3-4", 2, 7),
        ("5-8", 2, 13),
        ("9-16", 1, 9),
        ("33-64", 1, 64),
    ]


def test_grouping_loses_no_batch_no_row_and_no_time() -> None:
    batches = [BatchStatistic(rows, rows % 5 + 1, rows * 7) for rows in range(1, 129)]
    groups = grouped(batches)
    assert sum(group.count for group in groups) == sum(row.count for row in batches)
    assert sum(group.rows for group in groups) == sum(row.rows * row.count for row in batches)
    assert sum(group.compute_ns for group in groups) == sum(row.compute_ns for row in batches)
    assert grouped([]) == list[BatchGroup]()
