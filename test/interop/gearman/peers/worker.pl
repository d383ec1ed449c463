#!/usr/bin/perl
# A worker on Perl's Gearman::Worker. README.md describes its input and output.
use strict;
use warnings;
use Gearman::Worker;

my ($port, $function) = @ARGV;
$| = 1;
my $worker = Gearman::Worker->new(job_servers => ["127.0.0.1:$port"]);

my %behaviours = (
    echo    => sub { $_[0]->argref },
    empty   => sub { '' },
    status  => sub { $_[0]->set_status(1, 2); 'done' },
    data    => sub { $worker->send_work_data($_[0], "part\0"); 'done' },
    warning => sub { $worker->send_work_warning($_[0], "part\0"); 'done' },
    fail    => sub { undef },
    exception => sub { $worker->send_work_exception($_[0], "boom\0") },
    held      => sub {
        print "job ", unpack('H*', $_[0]->arg), "\n";
        <STDIN> // exit;
        'done';
    },
);

my ($behaviour) = split /:/, $function;
$worker->register_function($function => $behaviours{$behaviour});
$worker->work while 1;
