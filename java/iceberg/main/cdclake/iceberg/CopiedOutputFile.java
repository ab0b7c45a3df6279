package cdclake.iceberg;

import org.apache.iceberg.io.InputFile;
import org.apache.iceberg.io.OutputFile;
import org.apache.iceberg.io.PositionOutputStream;

/** A file whose content is kept as soon as it is stored. */
final class CopiedOutputFile implements OutputFile {
    private final OutputFile file;
    private final WrittenFiles written;

    CopiedOutputFile(OutputFile file, WrittenFiles written) {
        this.file = file;
        this.written = written;
    }

    @Override
    public PositionOutputStream create() {
        return new CopiedStream(file.create(), file.location(), written);
    }

    @Override
    public PositionOutputStream createOrOverwrite() {
        return new CopiedStream(file.createOrOverwrite(), file.location(), written);
    }

    @Override
    public String location() {
        return file.location();
    }

    @Override
    public InputFile toInputFile() {
        return file.toInputFile();
    }
}
