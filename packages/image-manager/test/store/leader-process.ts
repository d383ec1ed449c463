/**
 * Runs a leader in its own process: `node leader-process.ts LOCATION`. It prints `leads OWNER` once it is elected.
 * Then it writes batches of builds, each with a new number, and prints `wrote BATCH` after each. After a failed write
 * it prints `refused CODE` and ends.
 */
import { StoreError } from '../../src/errors.ts';
import { openStateStore } from '../../src/store/stores.ts';
import { build } from './records.ts';

/** Builds in a batch. */
const SIZE = 40;

const store = await openStateStore(process.argv[2] as string);
const leadership = await store.lead();
leadership.lost.addEventListener('abort', () => console.log('lost'));
console.log(`leads ${store.owner}`);
try {
  for (;;) {
    const batch = await leadership.takeNumbers(1);
    await leadership.write({
      builds: Array.from({ length: SIZE }, (_, index) =>
        build(store.owner, batch, { id: `${batch}/${index}`, reason: `${batch} of ${SIZE}` }),
      ),
    });
    console.log(`wrote ${batch}`);
  }
} catch (error) {
  console.log(`refused ${error instanceof StoreError ? error.code : String(error)}`);
  await store.close();
}
