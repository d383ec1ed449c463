import { deepEqual, equal } from 'node:assert/strict';
import { test } from 'node:test';
import { type ManagedDiskImage, type ManagedProvider, rollback } from '@nodepool-builder/image-manager';
import * as fc from 'fast-check';
import {
  checkEnd,
  checkNothingGoodGoes,
  checkOneAtATime,
  checkPurity,
  readyAt,
  wantedPlaces,
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
      followsZuul: fc.boolean(),
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

/** What happens between two plans; fast-check shows it by its words. */
interface Event {
  readonly happen: (simulation: Simulation) => void;
  readonly [fc.toStringMethod]: () => string;
}

function event(words: string, happen: (simulation: Simulation) => void): Event {
  return { happen, [fc.toStringMethod]: () => words };
}

const end = fc.tuple(fc.nat({ max: 9 }), fc.constantFrom(true, true, true, false)).map(([index, well]) =>
  event(`job ${index} ends ${well ? 'well' : 'badly'}`, (simulation) => {
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
  event('builders go', (simulation) => {
    simulation.online = false;
  }),
  event('builders come', (simulation) => {
    simulation.online = true;
  }),
);

const wish = diskimageName.chain((name) =>
  fc.constantFrom(
    event(`${name} is asked for`, (simulation) => void simulation.demanded.add(name)),
    event(`${name} is rolled back`, (simulation) => {
      const result = rollback(simulation.state, name);
      if ('withdrawn' in result) simulation.put(result.withdrawn);
    }),
  ),
);

const ofZuul = fc
  .tuple(diskimageName, fc.constantFrom(1, HOUR, DAY))
  .map(([name, ago]) =>
    event(`a builder takes a ${name} that is ${ago} s old`, (simulation) => simulation.take(name, ago)),
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
    { weight: 4, arbitrary: wish },
    { weight: 3, arbitrary: ofZuul },
    { weight: 2, arbitrary: change },
  ),
  { minLength: 20, maxLength: 80, size: 'large' },
);

/** Plans, checks the plan, and begins what it says. */
function pass(simulation: Simulation): void {
  const plan = simulation.plan();
  checkPurity(simulation, plan);
  checkNothingGoodGoes(simulation, plan);
  simulation.begin(plan.steps);
  checkOneAtATime(simulation);
}

/** Lets everything end well until nothing is to be done any more, and nothing waits for a time. */
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

test('whatever happens, nothing good goes; when it stops happening, what is wanted is there, and nothing else', () => {
  fc.assert(
    fc.property(diskimages, providers, history, (some, places, events) => {
      const simulation = new Simulation(some, places);
      let had = new Set<string>();
      for (const { happen } of events) {
        happen(simulation);
        pass(simulation);
        // What is configured without a break, and was once there, is there.
        const wanted = [...wantedPlaces(simulation).keys()];
        const have = wanted.filter((place) => readyAt(simulation.state, place).length > 0);
        deepEqual(
          wanted.filter((place) => had.has(place) && !have.includes(place)),
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

test('a year of daily builds, of which every third fails once, leaves a few records', () => {
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
