# CrashCases.pm - a server on which sessions end at stop points, and sheets on it whose stored rows can be compared.
package CrashCases;
use strict;
use warnings;
use SheetTest;
use Exporter 'import';
our @EXPORT = qw(start_cases rows_of new_sheet run_to fsck);

my $node;

sub start_cases
{
	$node = new_server(@_);
	$node->safe_psql('postgres', "INSERT INTO sheet.account (uid, name) VALUES (1, 'editor')");
	return $node;
}

# Every stored row of the sheet, as text.
sub rows_of
{
	my ($sheet) = @_;
	my @parts = map { "(SELECT string_agg(t::text, E'\\n' ORDER BY t::text) FROM sheet.$_ t WHERE sheet_id = $sheet)" }
	  qw(sheet log_batch segment version version_tile property_set log_trim ownership member);
	return $node->safe_psql('postgres', 'SELECT concat_ws(E\'\\n--\\n\', ' . join(', ', @parts) . ')');
}

# A sheet with two versions, of several tiles, and edits after them.
sub new_sheet
{
	my $sheet = $node->safe_psql('postgres', "SELECT sheet.create('cases', 300, 60)");
	for my $version (1, 2)
	{
		my @edits = map { [ $_ * 7, $_, "v$version cell $_" ] } 0 .. 39;
		$node->safe_psql('postgres', "SELECT sheet.apply($sheet, " . batch(@edits) . "); SELECT sheet.set_property($sheet, '1:$version', 'height', '$version'); SELECT sheet.commit($sheet, 'v$version')");
	}
	$node->safe_psql('postgres', "SELECT sheet.apply($sheet, " . batch([ 0, 0, 'open' ], [ 250, 50, 'far' ]) . ')');
	return $sheet;
}

# Runs it with the point set; true when it succeeded. After a crash, the server is back.
sub run_to
{
	my ($point, $sql) = @_;
	my $life = server_life($node);
	my ($code) = $node->psql('postgres', "SET pg_sheet.stop_point = '$point';\n$sql", on_error_die => 0, on_error_stop => 1);
	wait_until_next_life($node, $life) if $point =~ /:(kill|panic)/;
	return $code == 0;
}

sub fsck
{
	my ($sheet, $arguments) = @_;
	return $node->safe_psql('postgres', "SELECT severity, what, place, repaired FROM sheet.fsck($sheet, $arguments)");
}

1;
