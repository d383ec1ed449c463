# Does the same as libgearman.c, with the Perl library from Debian's libgearman-client-perl.
use strict;
use warnings;
use Gearman::Client;
use Gearman::Worker;
use Time::HiRes 'time';

$| = 1;
my ($role, $host, $port, $function) = @ARGV;
my @server = (job_servers => ["$host:$port"]);
my %roles = (worker => \&work, client => \&serve_client, functions => \&serve_functions);
$roles{$role}->();

sub work {
    my $worker = Gearman::Worker->new(@server);
    $worker->register_function($function => sub { $_[0]->arg });
    $worker->work while 1;
}

sub serve_client {
    my $client = Gearman::Client->new(@server);
    while (<STDIN>) {
        my ($in_flight, $bytes, $milliseconds) = split;
        my $payload  = 'x' x $bytes;
        my $jobs     = 0;
        my $begin    = time;
        my $deadline = $begin + $milliseconds / 1000;
        my %handlers = (
            on_complete => sub {
                die 'a result is not what was sent' if length ${ $_[0] } != $bytes;
                $jobs += 1;
            },
            on_fail => sub { die 'a job failed' },
        );
        # Submits in waves, because the library recurses if on_complete submits.
        while (time < $deadline) {
            my $tasks = $client->new_task_set;
            $tasks->add_task($function => \$payload, {%handlers}) for 1 .. $in_flight;
            $tasks->wait;
        }
        printf "%d %.6f\n", $jobs, time - $begin;
    }
}

sub serve_functions {
    my $worker = Gearman::Worker->new(@server);
    while (<STDIN>) {
        my ($order, $count) = split;
        for my $name (map {"function-$_"} 0 .. $count - 1) {
            if   ($order eq 'register') { $worker->register_function($name => sub { }) }
            else                        { $worker->unregister_function($name) }
        }
        print "ok\n";
    }
}
