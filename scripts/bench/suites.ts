import { join } from 'node:path';
import { appearance } from '../../test/benchmarks/appearance.ts';
import type { Benchmark } from '../../test/benchmarks/benchmark.ts';
import { debianBuilds } from '../../test/benchmarks/builds/debian-builds.ts';
import { commands } from '../../test/benchmarks/commands.ts';
import { pipeline } from '../../test/benchmarks/download/pipeline.ts';
import { ranges } from '../../test/benchmarks/download/ranges.ts';
import { restart } from '../../test/benchmarks/fleet/restart.ts';
import { decoding } from '../../test/benchmarks/gearman/decoding.ts';
import { echo } from '../../test/benchmarks/gearman/echo.ts';
import { hostilePeers } from '../../test/benchmarks/gearman/hostile-peers.ts';
import { jobServer } from '../../test/benchmarks/gearman/job-server.ts';
import { largePayloads } from '../../test/benchmarks/gearman/large-payloads.ts';
import { manyFunctions } from '../../test/benchmarks/gearman/many-functions.ts';
import { serverStalls } from '../../test/benchmarks/gearman/server-stalls.ts';
import { manyImages, manyImagesInPostgresql } from '../../test/benchmarks/manager/many-images.ts';
import { memory } from '../../test/benchmarks/memory.ts';
import { removal } from '../../test/benchmarks/removal.ts';
import { roundTrips } from '../../test/benchmarks/round-trips.ts';
import { startUp } from '../../test/benchmarks/start-up.ts';
import { attestation } from '../../test/benchmarks/upload/attestation.ts';
import { azure } from '../../test/benchmarks/upload/azure.ts';
import { conversion } from '../../test/benchmarks/upload/conversion.ts';
import { daemonMemory } from '../../test/benchmarks/upload/daemon-memory.ts';
import { ebs } from '../../test/benchmarks/upload/ebs.ts';
import { glance } from '../../test/benchmarks/upload/glance.ts';
import { timeline } from '../../test/benchmarks/upload/timeline.ts';
import { wire } from '../../test/benchmarks/upload/wire.ts';
import { logFollowers } from '../../test/benchmarks/web/log-followers.ts';
import { statusPage } from '../../test/benchmarks/web/status-page.ts';

/** Benchmarks that run together and share a table. */
export interface Suite {
  readonly benchmarks: readonly Benchmark[];
  /** Page with the results. */
  readonly page: string;
  /** Chart next to the page, for a suite whose measurements have figures. */
  readonly chart?: string;
}

const DOCS = join(import.meta.dirname, '../../docs');

/** Page of all suites except the fleet's. */
const PAGE = join(DOCS, 'benchmarks.md');

/** All suites, by the name that scripts/bench.ts accepts. */
export const SUITES: Readonly<Record<string, Suite>> = {
  builder: {
    benchmarks: [commands, startUp, appearance, removal, memory, roundTrips],
    page: PAGE,
  },
  build: {
    benchmarks: [debianBuilds],
    page: PAGE,
  },
  gearman: {
    benchmarks: [echo, largePayloads, manyFunctions, decoding, jobServer, serverStalls, hostilePeers],
    page: PAGE,
    chart: join(DOCS, 'benchmarks-gearman.svg'),
  },
  upload: {
    benchmarks: [wire, glance, daemonMemory, conversion, timeline, attestation, ebs, azure],
    page: PAGE,
  },
  manager: {
    benchmarks: [manyImages, manyImagesInPostgresql],
    page: PAGE,
  },
  fleet: {
    benchmarks: [restart],
    page: join(DOCS, 'scaling.md'),
  },
  web: {
    benchmarks: [statusPage, logFollowers],
    page: PAGE,
  },
  download: {
    benchmarks: [pipeline, ranges],
    page: PAGE,
  },
};
