/** Uploads an image to a double in its own process, for `resume.test.ts`: `node killed-upload.ts SETTINGS`. */
import { requestFor } from './disk.ts';
import { openProvider } from './oci-fixture.ts';

const { settings, directory, path, isHashed } = JSON.parse(process.argv[2] ?? '{}');
const request = await requestFor(path);
const { checksums: _, ...file } = request.file;
await openProvider(settings, directory).upload(isHashed ? request : { ...request, file });
