"""A file has one name, however the folder in `sys.path` leads to it."""

from syncscope.tracers.places import direct


def test_a_way_by_another_folder_is_left_out_where_it_leads_to_the_same_file(tmp_path):
    (tmp_path / "misc").mkdir()
    (tmp_path / "proj").mkdir()
    (tmp_path / "proj" / "losses.py").touch()
    straight = str(tmp_path / "proj" / "losses.py")
    assert direct(f"{tmp_path}/misc/../proj/losses.py") == straight
    assert direct(straight) == straight
    assert direct("<stdin>") == "<stdin>"


def test_a_link_on_the_way_is_followed(tmp_path):
    """`link/..` is where the link leads to, and above that."""
    elsewhere = tmp_path / "far" / "away"
    elsewhere.mkdir(parents=True)
    (tmp_path / "far" / "losses.py").touch()
    (tmp_path / "link").symlink_to(elsewhere)
    path = f"{tmp_path}/link/../losses.py"
    assert direct(path) == path
    assert direct(f"{tmp_path}/gone/../nothing.py") == f"{tmp_path}/gone/../nothing.py"
