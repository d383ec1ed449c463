import { deepEqual, equal } from 'node:assert/strict';
import { test } from 'node:test';
import type { ManagedDiskImage, ManagedProvider } from '@nodepool-builder/image-manager';
import * as fc from 'fast-check';
import { rollback } from '../../src/request-handler.ts';
import {
  checkEnd,
  checkGoodOnesStay,
  checkOneAtATime,
  checkPurity,
  configuredTargets,
  readyAt,
} from './invariants.ts';
import { Simulation } from './simulation.ts';
import { DAY, HOUR } from './situation.ts';
import { stepInWords } from './situation-table.ts';

const plain = { noNullPrototype: true } as const;
const diskimageName = fc.constantFrom('debian', 'trixie');
const imageName = fc.constantFrom('debian', 'image');
const providerName = fc.constantFrom('cloud', 'other');
const byName = { selector: ({ name }: { readonly name: string }) => name };

const diskimages = fc.uniqueArray(
  fc.record(
    {
      name: diskimageName,
      digest: fc.constantFrom('one', 'two'),
      pause: fc.boolean(),
      rebuildAge: fc.constantFrom(HOUR, DAY),
      keep: fc.integer({ min: 1, max: 3 }),
      buildTimeout: fc.constant(HOUR),
      isImported: fc.boolean(),
    },
    plain,
  ),
  { ...byName, minLength: 1 },
);

const image = fc.record({ name: imageName, diskimage: diskimageName, pause: fc.boolean() }, plain);

const providers = fc.uniqueArray(
  fc.record(
    {
      name: providerName,
      pause: fc.boolean(),
      uploadTimeout: fc.constant(HOUR),
      images: fc.uniqueArray(image, byName),
    },
    plain,
  ),
  byName,
);

/** An event between two plans, with words for fast-check's reports. */
interface Event {
  readonly happen: (simulation: Simulation) => void;
  readonly [fc.toStringMethod]: () => string;
}

function event(words: string, happen: (simulation: Simulation) => void): Event {
  return { happen, [fc.toStringMethod]: () => words };
}

const end = fc.tuple(fc.nat({ max: 9 }), fc.constantFrom(true, true, true, false)).map(([index, well]) =>
  event(`job ${index} ${well ? 'succeeds' : 'fails'}`, (simulation) => {
    const { jobs } = simulation;
    const id = jobs[index % jobs.length];
    if (id !== undefined) simulation.end(id, well);
  }),
);

const later = fc.constantFrom(30, HOUR, DAY).map((seconds) =>
  event(`${seconds} s pass`, (simulation) => {
    simulation.now += seconds * 1000;
  }),
);

const trouble = fc.constantFrom(
  event('the manager dies', (simulation) => simulation.crash()),
  event('disks are lost', (simulation) => simulation.loseFiles()),
  event('builders disconnect', (simulation) => {
    simulation.online = false;
  }),
  event('builders connect', (simulation) => {
    simulation.online = true;
  }),
);

const request = diskimageName.chain((name) =>
  fc.constantFrom(
    event(`${name} is requested`, (simulation) => void simulation.requested.add(name)),
    event(`${name} is rolled back`, (simulation) => {
      const result = rollback(simulation.state, name);
      for (const build of typeof result === 'string' ? [] : (result.builds ?? [])) simulation.put(build);
    }),
  ),
);

const ofZuul = fc
  .tuple(diskimageName, fc.constantFrom(1, HOUR, DAY))
  .map(([name, ago]) =>
    event(`a builder imports a ${name} that is ${ago} s old`, (simulation) =>
      simulation.importBuild(name, ago),
    ),
  );

const change = fc.oneof(
  diskimages.map((changed) =>
    event(`diskimages: ${fc.stringify(changed)}`, (simulation) => {
      simulation.diskimages = changed;
    }),
  ),
  providers.map((changed) =>
    event(`providers: ${fc.stringify(changed)}`, (simulation) => {
      simulation.providers = changed;
    }),
  ),
);

const history = fc.array(
  fc.oneof(
    { weight: 12, arbitrary: end },
    { weight: 4, arbitrary: later },
    { weight: 3, arbitrary: trouble },
    { weight: 4, arbitrary: request },
    { weight: 3, arbitrary: ofZuul },
    { weight: 2, arbitrary: change },
  ),
  { minLength: 20, maxLength: 80, size: 'large' },
);

/** Plans, checks the plan, and starts its steps. */
function pass(simulation: Simulation): void {
  const plan = simulation.plan();
  checkPurity(simulation, plan);
  checkGoodOnesStay(simulation, plan);
  simulation.start(plan.steps);
  checkOneAtATime(simulation);
}

/** Lets all jobs succeed until no steps and no waits are left. */
function settle(simulation: Simulation): void {
  for (let round = 0; round < 200; round++) {
    for (const id of simulation.jobs) simulation.end(id, true);
    const { steps, waits, nextAt } = simulation.plan();
    if (steps.length > 0) pass(simulation);
    else if (waits.length === 0) return;
    else if (nextAt === undefined) throw new Error(`stuck: ${waits.map(({ reason }) => reason).join()}`);
    else simulation.now = nextAt;
  }
  throw new Error(`no end: ${simulation.plan().steps.map(stepInWords).join()}`);
}

test('good images survive every event, and providers then have exactly the configured images', () => {
  fc.assert(
    fc.property(diskimages, providers, history, (some, targets, events) => {
      const simulation = new Simulation(some, targets);
      let had = new Set<string>();
      for (const { happen } of events) {
        happen(simulation);
        pass(simulation);
        // A target that stays configured never loses its last image.
        const wanted = [...configuredTargets(simulation).keys()];
        const have = wanted.filter((target) => readyAt(simulation.state, target).length > 0);
        deepEqual(
          wanted.filter((target) => had.has(target) && !have.includes(target)),
          [],
        );
        had = new Set(have);
      }
      simulation.online = true;
      simulation.diskimages = ['debian', 'trixie'].map(untroubledDiskImage);
      simulation.providers = ['cloud', 'other'].map(untroubledProvider);
      settle(simulation);
      checkEnd(simulation);
    }),
    { numRuns: 200 },
  );
});

function untroubledDiskImage(name: string): ManagedDiskImage {
  return { name, digest: 'last', pause: false, rebuildAge: DAY, keep: 2, buildTimeout: HOUR };
}

function untroubledProvider(name: string): ManagedProvider {
  return {
    name,
    pause: false,
    uploadTimeout: HOUR,
    images: [
      { name: 'debian', diskimage: 'debian', pause: false },
      { name: 'copy', diskimage: 'trixie', pause: false },
    ],
  };
}

test('a year of daily builds leaves few records, even if every third fails once', () => {
  const simulation = new Simulation(
    [untroubledDiskImage('debian')],
    ['cloud', 'other'].map(untroubledProvider),
  );
  for (let day = 0; day < 365; day++) {
    pass(simulation);
    if (day % 3 === 0) for (const id of simulation.jobs) simulation.end(id, false);
    settle(simulation);
    const { builds, uploads } = simulation.state;
    equal(
      builds.size <= 4 && uploads.size <= 8,
      true,
      `day ${day}: ${builds.size} builds, ${uploads.size} uploads`,
    );
    simulation.now += DAY * 1000;
  }
});
