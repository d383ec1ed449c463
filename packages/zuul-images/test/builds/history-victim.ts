/** Records builds in sequence until it is killed, and prints their numbers: `history-victim.ts DIRECTORY`. */
import { ProcessedBuilds, withImported } from '../../src/builds/processed-builds.ts';

const processed = await ProcessedBuilds.open(process.argv[2] ?? '', 'noble');
for (let id = (processed.history.newest?.id ?? 0) + 1; ; id += 1) {
  const build = { uuid: `build-${id}`, id, endTime: id * 1000, pipeline: 'periodic', content: [] };
  await processed.write(withImported(processed.history, { same: [build], passedOver: [] }));
  console.log(id);
}
