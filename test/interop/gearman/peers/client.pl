#!/usr/bin/perl
# A client on Perl's Gearman::Client. README.md describes its input and output.
use strict;
use warnings;
use Gearman::Client;
use Gearman::Task;

my ($port, $mode, $priority, $function, $unique) = @ARGV;
$| = 1;
binmode STDIN;
my $server = "127.0.0.1:$port";
my $client = Gearman::Client->new(job_servers => [$server], exceptions => 1);

sub say_bytes {
    my ($word, $bytes) = @_;
    print "$word ", unpack('H*', $bytes), "\n";
}

if ($mode eq 'query') {
    my $status = $client->get_status("$server//$function");
    printf "known %d running %d\n", $status->known ? 1 : 0, $status->running ? 1 : 0;
    exit;
}

my $payload = do { local $/; <STDIN> };
my $task = Gearman::Task->new(
    $function,
    \$payload,
    {
        uniq         => $unique,
        priority     => $priority,
        background   => $mode eq 'background',
        on_status    => sub { print "status $_[0] $_[1]\n" },
        on_data      => sub { say_bytes('data', ${ $_[0] }) },
        on_warning   => sub { say_bytes('warning', ${ $_[0] }) },
        on_complete  => sub { say_bytes('complete', ${ $_[0] }) },
        on_exception => sub { say_bytes('exception', $_[0]) },
        on_fail      => sub { print "fail\n" },
    }
);
my $tasks = $client->new_task_set;
# The handle is HOST:PORT//HANDLE.
my $handle = $tasks->add_task($task) or do { print "error the server rejected the job\n"; exit };
print "created ", $handle =~ s{^.*?//}{}r, "\n";
$tasks->wait if $mode eq 'foreground';
